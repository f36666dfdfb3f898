package import Core
package import SessionProtocol

/// Has every account monitored by all storage servers of its swarm. Time, answers and the map of the network come in, actions come out; whoever
/// holds it does the talking, and calls ``advance(to:)`` at ``nextWakeUp``.
///
///     server    idle ──(pause over, a place free)──▶ connecting ──(HELLO)──▶ connected ──▶ asked for all accounts of its swarm
///                 ▲                                       │                      │
///                 └──(10, 30, 60, 120 s)──────────────────┴──(failed, BYE, silent, gone from the map)
///
/// A subscription that joins a swarm gets the next number of a sequence, so that a swarm's members are in order. A connection was asked for all
/// members up to ``Server/askedThrough``: which is all that is kept for most of ten million pairs of subscription and server. What was asked
/// together is a range of the sequence, and is renewed together; neighbours that may be renewed become one range.
package struct SwarmMonitor: Sendable {
    let configuration: Configuration
    var random: SplitMix64
    var subscriptions = SubscriptionTable()
    var swarms: [Swarm] = []
    var swarmIndex: [UInt64: Int] = [:]
    var ring = SwarmRing([])
    /// Swarms that storage servers named, and that the map does not know.
    var namedIndex: [UInt64: Int] = [:]
    /// Accounts that were sent on a moment after they were sent elsewhere, and where.
    var heldMoves: [AccountID: (hint: SwarmHint, source: Int, due: Instant)] = [:]
    /// With accounts that are still to be asked for.
    var swarmsToAsk: Set<Int> = []
    var askAt: Instant?
    /// Of held moves, and of places that end.
    var movesAt: Instant?
    var servers: [Server] = []
    /// By public key.
    var serverIndex: [[UInt8]: Int] = [:]
    var freeServers: [Int] = []
    /// Servers by the connection that they have or are making.
    var connections: [ConnectionNumber: Int] = [:]
    var requests: [RequestTag: Request] = [:]
    var unansweredByteCount = 0
    /// Servers that could not be asked for all, since too much is unanswered.
    var backlog: [Int] = []
    var connectingCount = 0
    var lastConnection: UInt64 = 0
    var lastTag: UInt64 = 0
    var lastSequence: UInt64 = 0
    var actions: [Action] = []
    var mapRequestedAt: Instant?
    var mapWantedAt: Instant?
    /// Not later than the time at which there is something to do.
    var wakeUp: Instant?

    package init(configuration: Configuration = Configuration(), seed: UInt64) {
        self.configuration = configuration
        random = SplitMix64(seed: seed)
    }

    /// What has to be done, in order.
    package mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    /// When ``advance(to:)`` has something to do, if nothing happens before; nil for never.
    package var nextWakeUp: Instant? { wakeUp }

    // MARK: Subscriptions

    /// A subscription is new, or was renewed with another signature: all servers of its swarm are asked.
    ///
    /// - Parameters:
    ///   - id: Names it in ``Action/ask(_:_:_:)``.
    ///   - account: Whose messages it is about; never another for the same id.
    ///   - byteCount: Of its bencoded entry.
    ///   - now: The time.
    package mutating func set(_ id: SubscriptionID, account: AccountID, entryByteCount byteCount: Int, at now: Instant) {
        for swarm in place(id, account, byteCount) { askForNewMembers(ofSwarm: swarm, at: now) }
    }

    /// Several at once: each server is asked for its part in one request, as far as that has room. For the start, and for those that come within
    /// a few milliseconds of each other.
    package mutating func set(_ all: [MonitoredSubscription], at now: Instant) {
        subscriptions.reserveCapacity(adding: all.count)
        var isChanged = [Bool](repeating: false, count: swarms.count)
        for one in all {
            for swarm in place(one.id, one.account, one.entryByteCount) { isChanged[swarm] = true }
        }
        for swarm in swarms.indices where isChanged[swarm] { askForNewMembers(ofSwarm: swarm, at: now) }
    }

    /// - Returns: Its swarms: mostly one.
    private mutating func place(_ id: SubscriptionID, _ account: AccountID, _ byteCount: Int) -> [Int] {
        let slots = subscriptions.set(id, account: account, byteCount: byteCount) { [ring, swarmIndex] account in
            ring.swarm(at: account.swarmPosition).flatMap { swarmIndex[$0] }
        }
        return slots.compactMap { slot in
            guard let swarm = subscriptions.swarm(ofSlot: slot) else { return nil }
            join(swarm, slot)
            return swarm
        }
    }

    /// Storage servers cannot be told: what they report from here on is not accepted.
    package mutating func remove(_ id: SubscriptionID) {
        for swarm in subscriptions.remove(id) { leave(swarm) }
    }

    /// All of the accounts that fulfil the condition.
    package mutating func removeAll(where condition: (AccountID) -> Bool) {
        for id in subscriptions.ids(where: condition) { remove(id) }
    }

    /// Whether a report about an account is accepted from a connection: it was asked to monitor the account, and has not refused.
    package func accepts(_ account: AccountID, from connection: ConnectionNumber) -> Bool {
        guard let index = connections[connection], case .connected = servers[index].state else { return false }
        let (askedThrough, refused) = (servers[index].askedThrough, servers[index].refused)
        return subscriptions.contains(account, inSwarm: servers[index].swarm) { first, last in
            first <= askedThrough && refused[last <= askedThrough ? last : first] == nil
        }
    }

    mutating func join(_ swarm: Int, _ slot: Int) {
        lastSequence += 1
        let wasMember = subscriptions.setSequence(lastSequence, ofSlot: slot)
        if wasMember { leave(swarm) }
        swarms[swarm].append(sequence: lastSequence, slot: slot)
    }

    /// The member's place stays until there are many such.
    mutating func leave(_ swarm: Int) {
        swarms[swarm].liveCount -= 1
        swarms[swarm].compact { [subscriptions] in subscriptions.isLive($0) }
    }

    // MARK: Time

    /// Does what is due.
    package mutating func advance(to now: Instant) {
        for index in servers.indices {
            guard let due = servers[index].wakeUp, due <= now else { continue }
            check(index, at: now)
        }
        moveOn(at: now)
        connect(at: now)
        if let wanted = mapWantedAt, wanted <= now {
            mapWantedAt = nil
            mapRequestedAt = now
            actions.append(.requestMap)
        }
        wakeUp = [mapWantedAt, askAt, movesAt].compactMap(\.self).min()
        for server in servers {
            if let due = server.wakeUp { wake(at: due) }
            if case .idle(let retryAt) = server.state, connectingCount < configuration.maximumConnecting { wake(at: retryAt) }
        }
    }

    mutating func wake(at time: Instant) {
        wakeUp = wakeUp.map { min($0, time) } ?? time
    }

    private mutating func check(_ index: Int, at now: Instant) {
        switch servers[index].state {
        case .connecting(_, let deadline) where deadline <= now:
            close(index, at: now)
        case .connected:
            if let oldest = servers[index].oldestDeadline, oldest <= now {
                // It may not monitor what it does not answer for.
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
