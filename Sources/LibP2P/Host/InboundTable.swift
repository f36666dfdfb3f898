import NIOCore

/// Which connections from outside are taken, and which make way. Pure: the host closes what it is told to.
///
///     admitted ──(secured)──▶ counted ──(a newcomer, and it is the least useful)──▶ evicted
///        │
///        └──(a handshake from elsewhere, and too many are going on)──▶ displaced
///
/// Addresses count by /24 and /64. A handshake can take a slot from a block that has more of them than its own, never the other way round: half-open
/// connections from a few networks do not keep others out. A connection evicts another one only when it is secured.
struct InboundTable<ID: Hashable> {
    struct Limits {
        /// Secured ones, in all and from one block.
        var connections = 200
        var connectionsPerBlock = 16
        /// Those that are not secured yet, in all and from one block.
        var handshakes = 64
        var handshakesPerBlock = 8
        /// From these only the totals count, and they are not evicted.
        var exempt: [AddressRange] = []
        /// For how long a peer must have been idle to be evicted by a newcomer from its own block.
        var idlePeriod = TimeAmount.seconds(60)
        /// For how long a new message is to a peer's credit.
        var creditPeriod = TimeAmount.minutes(5)
    }

    enum Admission {
        case refused
        /// - Parameter displacing: A handshake that is to be closed.
        case admitted(displacing: ID?)
    }

    enum Decision {
        case refused
        /// - Parameter evicting: A peer's connection that is to be closed.
        case kept(evicting: ID?)
    }

    private enum Phase: Equatable {
        case handshake
        case secured(PeerID)
        /// It is being closed, and counts no more.
        case leaving
    }

    private struct Entry {
        /// nil for a transport without addresses.
        let block: AddressRange?
        let isExempt: Bool
        var phase = Phase.handshake
        var standing = PeerStanding()
        /// When it was admitted, was last needed or last brought a new message.
        var usefulAt: NIODeadline
        /// When it last brought a new message.
        var creditedAt: NIODeadline?
        let order: Int
    }

    let limits: Limits
    private var entries: [ID: Entry] = [:]
    private var nextOrder = 0

    init(limits: Limits) {
        self.limits = limits
    }

    /// With those that are being closed.
    var count: Int { entries.count }
    var neededCount: Int { entries.values.count { $0.standing.isNeeded } }
    var handshakeCount: Int { entries.values.count { $0.phase == .handshake } }

    // MARK: Coming and going

    /// Somebody opened a connection, and nothing was read from it yet.
    mutating func admit(_ id: ID, from address: IPAddress?, at now: NIODeadline) -> Admission {
        let isExempt = address.map { address in limits.exempt.contains { $0.contains(address) } } ?? false
        let entry = Entry(block: address?.block, isExempt: isExempt, usefulAt: now, order: nextOrder)
        let handshakes = handshakesByBlock()
        let ownCount = handshakes[entry.block, default: []].count
        if !isExempt {
            let isBlockFull = entries.values.count { $0.block == entry.block && $0.phase != .leaving } >= limits.connectionsPerBlock
            guard ownCount < limits.handshakesPerBlock, !isBlockFull || leastUseful(in: entry.block, at: now) != nil else {
                return .refused
            }
        }
        var displaced: ID?
        if handshakeCount >= limits.handshakes {
            let crowd = handshakes.filter { $0.value.count > ownCount }.map(\.value)
                .max { ($0.count, $1[0].order) < ($1.count, $0[0].order) }
            guard let oldest = crowd?.first?.id else { return .refused }
            displaced = oldest
            entries[oldest]?.phase = .leaving
        }
        entries[id] = entry
        nextOrder += 1
        return .admitted(displacing: displaced)
    }

    /// The oldest first. Those from exempt addresses give up no slot.
    private func handshakesByBlock() -> [AddressRange?: [(id: ID, order: Int)]] {
        var blocks: [AddressRange?: [(id: ID, order: Int)]] = [:]
        for (id, entry) in entries where entry.phase == .handshake && !entry.isExempt {
            blocks[entry.block, default: []].append((id, entry.order))
        }
        return blocks.mapValues { $0.sorted { $0.order < $1.order } }
    }

    /// Its handshake is done, and it is a peer.
    mutating func secured(_ id: ID, as peer: PeerID, at now: NIODeadline) -> Decision {
        guard let entry = entries[id], entry.phase == .handshake else { return .refused }
        entries[id]?.usefulAt = now
        // The peer's older connection makes way for this one, or this one for it.
        let replaced = entries.filter { $0.value.phase == .secured(peer) }.keys
        for id in replaced { entries[id]?.phase = .leaving }
        let others = entries.values.filter { if case .secured = $0.phase { true } else { false } }
        var evicted: ID?
        if !entry.isExempt, others.count(where: { $0.block == entry.block && !$0.isExempt }) >= limits.connectionsPerBlock {
            evicted = leastUseful(in: entry.block, at: now)
        } else if others.count >= limits.connections {
            evicted = leastUseful(at: now)
        } else {
            entries[id]?.phase = .secured(peer)
            return .kept(evicting: nil)
        }
        guard let evicted else {
            entries[id]?.phase = .leaving
            return .refused
        }
        entries[evicted]?.phase = .leaving
        entries[id]?.phase = .secured(peer)
        return .kept(evicting: evicted)
    }

    mutating func left(_ id: ID) {
        entries[id] = nil
    }

    /// What is known of peers by now; those that are not named have no standing.
    mutating func rate(_ standings: [PeerID: PeerStanding], at now: NIODeadline) {
        for (id, entry) in entries {
            guard case .secured(let peer) = entry.phase else { continue }
            let standing = standings[peer] ?? PeerStanding()
            if standing.messageCount > entry.standing.messageCount {
                entries[id]?.creditedAt = now
                entries[id]?.usefulAt = now
            }
            if standing.isNeeded { entries[id]?.usefulAt = now }
            entries[id]?.standing = standing
        }
    }

    // MARK: Who makes way

    private func hasCredit(_ entry: Entry, at now: NIODeadline) -> Bool {
        entry.creditedAt.map { now - $0 < limits.creditPeriod } ?? false
    }

    /// Of one block: whoever has been idle for the longest time, if that is long enough.
    private func leastUseful(in block: AddressRange?, at now: NIODeadline) -> ID? {
        candidates(at: now).filter {
            $0.value.block == block && now - $0.value.usefulAt >= limits.idlePeriod && !hasCredit($0.value, at: now)
        }
        .min { ($0.value.usefulAt, $0.value.order) < ($1.value.usefulAt, $1.value.order) }?.key
    }

    /// Of all: without new messages before those that brought some, from the block with the most connections, idle for the longest time.
    private func leastUseful(at now: NIODeadline) -> ID? {
        let candidates = candidates(at: now)
        var crowds: [AddressRange?: Int] = [:]
        for entry in entries.values { if case .secured = entry.phase { crowds[entry.block, default: 0] += 1 } }
        func rank(_ entry: Entry) -> (Int, Int, NIODeadline, Int) {
            (hasCredit(entry, at: now) ? 1 : 0, -crowds[entry.block, default: 0], entry.usefulAt, entry.order)
        }
        return candidates.min { rank($0.value) < rank($1.value) }?.key
    }

    /// Neither exempt, nor needed, nor among the quarter that brought the most new messages of late: who buys itself a place by messages of its own has
    /// no more than that quarter.
    private func candidates(at now: NIODeadline) -> [ID: Entry] {
        let idle = entries.filter { _, entry in
            guard case .secured = entry.phase else { return false }
            return !entry.isExempt && !entry.standing.isNeeded
        }
        let credited = idle.filter { hasCredit($0.value, at: now) }
        let best = credited.sorted {
            ($0.value.standing.messageCount, -$0.value.order) > ($1.value.standing.messageCount, -$1.value.order)
        }.prefix(max(1, limits.connections / 4))
        let protected = Set(best.map(\.key))
        return idle.filter { !protected.contains($0.key) }
    }

    /// Those to close so that all peers together hold no more than `limit`: the least deserving first, of these whoever holds most.
    ///
    /// - Parameter held: What each holds, in bytes. Whoever holds little stays: closing it would free nothing.
    mutating func exceeding(_ limit: Int, at now: NIODeadline, held: (PeerID) -> Int) -> [ID] {
        typealias Holder = (id: ID, worth: Int, byteCount: Int)
        var holders: [Holder] = []
        var total = 0
        for (id, entry) in entries {
            guard case .secured(let peer) = entry.phase else { continue }
            let byteCount = held(peer)
            total += byteCount
            let worth = entry.isExempt ? 3 : entry.standing.isNeeded ? 2 : hasCredit(entry, at: now) ? 1 : 0
            if byteCount >= Self.smallHolding { holders.append((id, worth, byteCount)) }
        }
        var victims: [ID] = []
        for holder in holders.sorted(by: { ($0.worth, -$0.byteCount) < ($1.worth, -$1.byteCount) }) where total > limit {
            victims.append(holder.id)
            entries[holder.id]?.phase = .leaving
            total -= holder.byteCount
        }
        return victims
    }

    private static var smallHolding: Int { 16 * 1024 }
}
