import Core

/// Additional swarms of an account, reported by storage servers but not in the map.
///
/// A place is a separate account entry with copies of the account's slots. Lookups by id or account do not find it.
extension SubscriptionTable {
    struct Place: Sendable {
        /// Index of the account entry of this place.
        let account: Int32
        /// Index of the server that reported the swarm.
        let source: Int
        let addedAt: Instant
        /// The place ends at this time unless it is reported again.
        var until: Instant
    }

    enum Placement {
        /// The new slots, without sequence numbers yet, and the swarms that the account has left.
        case made([Int], left: [Departure])
        /// No place was added: the account is already a member, is unknown, or has too many places.
        case none
        /// The account's last place was added less than the interval ago.
        case tooEarly(until: Instant)
    }

    static let maximumPlaceCount = 3

    /// Adds a place. Extends it instead if the account has one in this swarm already.
    ///
    /// - Parameters:
    ///   - account: The account to monitor in another swarm as well.
    ///   - swarm: Index of the additional swarm.
    ///   - source: Index of the server that reported the swarm. A place that this server reported before is removed.
    ///   - now: The time of the report.
    ///   - until: When the place ends unless the swarm is reported again.
    ///   - interval: The minimum time between two new places of an account.
    mutating func addPlace(
        of account: AccountID, inSwarm swarm: Int, source: Int, at now: Instant, until: Instant, interval: Duration
    ) -> Placement {
        guard let owner = index(of: account) else { return .none }
        var all = places[Int32(owner)] ?? []
        if let known = place(of: owner, inSwarm: swarm) {
            if let index = all.firstIndex(where: { $0.account == Int32(known) }) { all[index].until = max(all[index].until, until) }
            if !all.isEmpty { places[Int32(owner)] = all }
            return .none
        }
        if let last = all.map(\.addedAt).max(), now - last < interval { return .tooEarly(until: last + interval) }
        var left: [Departure] = []
        if let index = all.firstIndex(where: { $0.source == source }) {
            left = freePlace(all.remove(at: index))
        } else if all.count >= Self.maximumPlaceCount {
            return .none
        }
        let index = append(Account(id: account, swarm: Int32(swarm), first: -1, owner: Int32(owner)))
        all.append(Place(account: Int32(index), source: source, addedAt: now, until: until))
        places[Int32(owner)] = all
        let made = slots(ofAccount: owner).map { link(slots[$0].id, byteCount: slots[$0].byteCount, to: index) }
        return .made(made, left: left)
    }

    /// Removes the places that meet a condition.
    ///
    /// - Returns: The swarm of each removed member.
    mutating func removePlaces(where condition: (Place, _ swarm: Int, _ ownSwarm: Int) -> Bool) -> [Departure] {
        var left: [Departure] = []
        for (owner, all) in places {
            let isRemoved = all.map { condition($0, Int(accounts[Int($0.account)].swarm), Int(accounts[Int(owner)].swarm)) }
            guard isRemoved.contains(true) else { continue }
            for (place, isRemoved) in zip(all, isRemoved) where isRemoved { left += freePlace(place) }
            let kept = zip(all, isRemoved).filter { !$1 }.map(\.0)
            places[owner] = kept.isEmpty ? nil : kept
        }
        return left
    }

    var nextPlaceEnd: Instant? { places.values.lazy.joined().map(\.until).min() }

    private mutating func freePlace(_ place: Place) -> [Departure] {
        let left = slots(ofAccount: Int(place.account)).compactMap { free($0) }
        freeAccounts.append(place.account)
        return left
    }

    func slots(ofAccount index: Int) -> [Int] {
        var (found, slot) = ([Int](), accounts[index].first)
        while slot >= 0 {
            found.append(Int(slot))
            slot = slots[Int(slot)].next
        }
        return found
    }

    /// The copies of a subscription's slot in the additional places of its account.
    func copies(ofSlot slot: Int) -> [Int] {
        guard !places.isEmpty, let all = places[slots[slot].account] else { return [] }
        let id = slots[slot].id
        return all.compactMap { place in slots(ofAccount: Int(place.account)).first { slots[$0].id == id } }
    }

    /// Number of subscriptions in additional places, by index of the swarm; not included in ``count``.
    var furtherCounts: [Int: Int] {
        places.values.joined().reduce(into: [:]) { counts, place in
            let account = Int(place.account)
            counts[Int(accounts[account].swarm), default: 0] += slots(ofAccount: account).count { slots[$0].sequence != 0 }
        }
    }
}
