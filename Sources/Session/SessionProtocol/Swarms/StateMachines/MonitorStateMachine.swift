import Core

/// Keeps every account monitored by all storage servers of its swarm. A state machine without I/O: inputs are time, answers and the map of the
/// network; its driver carries out the actions, and calls ``advance(to:)`` at ``nextWakeUp``.
///
///     server    idle ──(pause over, limit allows)──▶ connecting ──(HELLO)──▶ connected ──▶ asked for all accounts of its swarm
///                 ▲                                       │                      │
///                 └──(10, 30, 60, 120 s)──────────────────┴──(failed, BYE, silent, gone from the map)
///
/// A subscription that joins a swarm gets the next sequence number, so a swarm's members are ordered. A connection was asked for all members up to
/// ``Server/askedThrough``; no other state is kept for most of ten million pairs of subscription and server. Members asked for together form
/// a range and are renewed together; adjacent ranges that may be renewed are merged.
struct MonitorStateMachine: Sendable {
    let configuration: Configuration
    var random: SplitMix64
    var subscriptions = SubscriptionTable()
    /// Subscriptions to ask for at ``heldUntil``: renewed more often than ``Configuration/repeatInterval`` allows, or not readable.
    private var held: Set<SubscriptionID> = []
    private var heldUntil: Instant?
    var swarms: [Swarm] = []
    var swarmIndex: [UInt64: Int] = [:]
    var ring = SwarmRing([])
    /// Whether the map has servers at local addresses, as those of a test or a demonstration.
    var isLocalMap = false
    /// Indexes of swarms named by storage servers that are not in the map, by swarm id.
    var namedIndex: [UInt64: Int] = [:]
    /// Reports of another swarm less than ``Configuration/moveInterval`` after the account's previous one, to be handled later.
    var heldMoves: [AccountID: (hint: SwarmHint, source: Int, due: Instant)] = [:]
    /// Indexes of swarms with accounts that the swarm's servers are to be asked for.
    var swarmsToAsk: Set<Int> = []
    var askAt: Instant?
    /// The next time at which a held report or the end of a place is due.
    var movesAt: Instant?
    var servers: [Server] = []
    /// Indexes of servers by public key.
    var serverIndex: [[UInt8]: Int] = [:]
    var freeServers: [Int] = []
    /// Indexes of servers by their current connection or connection attempt.
    var connections: [ConnectionNumber: Int] = [:]
    var requests: [RequestTag: Request] = [:]
    var unansweredByteCount = 0
    /// Indexes of servers whose requests were postponed because too many bytes are unanswered.
    var backlog: [Int] = []
    var connectingCount = 0
    var lastConnection: UInt64 = 0
    var lastTag: UInt64 = 0
    var lastSequence: UInt64 = 0
    var actions: [Action] = []
    var mapRequestedAt: Instant?
    var mapWantedAt: Instant?
    /// When to call ``advance(to:)`` next, unless another event happens before: when an action is due, or an earlier time; nil for never.
    var nextWakeUp: Instant?

    init(configuration: Configuration = Configuration(), seed: UInt64) {
        self.configuration = configuration
        random = SplitMix64(seed: seed)
    }

    /// Returns the pending actions, in order.
    mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    // MARK: Subscriptions

    /// Carries out changes in their order. Neighbouring subscriptions are asked for together.
    mutating func apply(_ changes: [MonitoringChange], at now: Instant) {
        var added: [MonitoredSubscription] = []
        for change in changes {
            switch change {
            case .set(let one): added.append(one)
            case .remove(let id):
                set(added, at: now)
                added = []
                remove(id)
            }
        }
        set(added, at: now)
    }

    /// Adds subscriptions, or renews them with another signature: asks all servers of their swarms, with as few requests to each server as possible.
    /// One that is renewed too often is asked for later, with the entry that is stored then: each renewal would cost requests to all of these servers.
    mutating func set(_ all: [MonitoredSubscription], at now: Instant) {
        guard !all.isEmpty else { return }
        subscriptions.reserveCapacity(adding: all.count)
        var isChanged = [Bool](repeating: false, count: swarms.count)
        for one in all {
            let slots = subscriptions.set(one.id, account: one.account, byteCount: one.entryByteCount) { [ring, swarmIndex] account in
                ring.swarm(at: account.swarmPosition).flatMap { swarmIndex[$0] }
            }
            join(one.id, slots, at: now, &isChanged)
        }
        askForNewMembers(ofSwarms: isChanged, at: now)
    }

    /// Asks for subscriptions again some seconds later, because their entries could not be read. Subscriptions removed meanwhile are left out.
    mutating func askLater(_ ids: [SubscriptionID], at now: Instant) {
        guard !ids.isEmpty else { return }
        held.formUnion(ids)
        heldUntil = heldUntil ?? now + configuration.repeatInterval / 4
        if let heldUntil { wake(at: heldUntil) }
    }

    private mutating func askForHeld(at now: Instant) {
        guard let due = heldUntil, due <= now else { return }
        let ids = held.sorted { $0.rawValue < $1.rawValue }
        (held, heldUntil) = ([], nil)
        var isChanged = [Bool](repeating: false, count: swarms.count)
        for id in ids { join(id, subscriptions.slots(of: id), at: now, &isChanged) }
        askForNewMembers(ofSwarms: isChanged, at: now)
    }

    /// - Parameters:
    ///   - slots: its slots, the first of which has the count of its requests; none if it was removed.
    ///   - isChanged: set for the swarms that it joins.
    private mutating func join(_ id: SubscriptionID, _ slots: [Int], at now: Instant, _ isChanged: inout [Bool]) {
        guard let first = slots.first else { return }
        let (interval, burst) = (configuration.repeatInterval, configuration.repeatBurst)
        guard subscriptions.admitsRequest(ofSlot: first, at: now, interval: interval, burst: burst) else {
            return askLater([id], at: now)
        }
        if !held.isEmpty { held.remove(id) }
        for slot in slots {
            guard let swarm = subscriptions.swarm(ofSlot: slot) else { continue }
            join(swarm, slot)
            isChanged[swarm] = true
        }
    }

    private mutating func askForNewMembers(ofSwarms isChanged: [Bool], at now: Instant) {
        for swarm in swarms.indices where isChanged[swarm] { askForNewMembers(ofSwarm: swarm, at: now) }
    }

    /// Removes a subscription. Storage servers cannot be told; their further reports are not accepted.
    mutating func remove(_ id: SubscriptionID) {
        for one in subscriptions.remove(id) { leave(one) }
    }

    /// Removes the subscriptions of all accounts that meet a condition.
    mutating func removeAll(where condition: (AccountID) -> Bool) {
        for id in subscriptions.ids(where: condition) { remove(id) }
    }

    /// Whether to accept a report about an account from a connection: only if it was asked to monitor the account and has not refused.
    func accepts(_ account: AccountID, from connection: ConnectionNumber) -> Bool {
        guard let index = connections[connection], case .connected = servers[index].state else { return false }
        let (askedThrough, refused) = (servers[index].askedThrough, servers[index].refused)
        return subscriptions.contains(account, inSwarm: servers[index].swarm) { first, last in
            first <= askedThrough && refused[last <= askedThrough ? last : first] == nil
        }
    }

    /// The key of the storage server of a connection; empty once that has ended.
    func serverKey(of connection: ConnectionNumber) -> [UInt8] {
        connections[connection].map { servers[$0].description.publicKey } ?? []
    }

    /// The number of an account's subscriptions.
    func deviceCount(of account: AccountID) -> Int { subscriptions.count(of: account) }

    mutating func join(_ swarm: Int, _ slot: Int) {
        lastSequence += 1
        if let former = subscriptions.setSequence(lastSequence, ofSlot: slot) {
            leave(swarm)
            // A server that was not asked with the new number yet is judged by the first one.
            if former != subscriptions.slots[slot].firstSequence { forgetRefusals(of: former, inSwarm: swarm) }
        }
        swarms[swarm].append(sequence: lastSequence, slot: slot)
    }

    mutating func leave(_ left: SubscriptionTable.Departure) {
        leave(left.swarm)
        for sequence in [left.firstSequence, left.sequence] { forgetRefusals(of: sequence, inSwarm: left.swarm) }
    }

    /// Counts a member that has left. Its array element is removed later, by compaction.
    private mutating func leave(_ swarm: Int) {
        swarms[swarm].liveCount -= 1
        swarms[swarm].compact { [subscriptions] in subscriptions.isLive($0) }
    }

    // MARK: Time

    /// Performs the actions that are due.
    mutating func advance(to now: Instant) {
        for index in servers.indices {
            guard let due = servers[index].wakeUp, due <= now else { continue }
            check(index, at: now)
        }
        moveOn(at: now)
        askForHeld(at: now)
        connect(at: now)
        if let wanted = mapWantedAt, wanted <= now {
            mapWantedAt = nil
            mapRequestedAt = now
            actions.append(.requestMap)
        }
        nextWakeUp = [mapWantedAt, askAt, movesAt, heldUntil].compactMap(\.self).min()
        for server in servers {
            if let due = server.wakeUp { wake(at: due) }
            if case .idle(let retryAt) = server.state, connectingCount < configuration.maximumConnecting { wake(at: retryAt) }
        }
    }

    mutating func wake(at time: Instant) {
        nextWakeUp = nextWakeUp.map { min($0, time) } ?? time
    }

    private mutating func check(_ index: Int, at now: Instant) {
        switch servers[index].state {
        case .connecting(_, let deadline) where deadline <= now:
            close(index, at: now)
        case .connected:
            if let oldest = servers[index].oldestDeadline, oldest <= now {
                // A server that does not answer may not monitor the accounts.
                close(index, at: now)
            } else {
                retryRefused(index, at: now)
                renew(index, at: now)
            }
        default:
            break
        }
        servers[index].updateWakeUp()
    }
}
