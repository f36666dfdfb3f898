package import NodeAPI
import Cluster
import Logging
package import NodeMetrics
package import Core
package import Storage
import Synchronization
package import Waku

/// Messages: which node handles each, and when another node takes over.
extension ClusterNode {
    /// How long a message's outcome is awaited. After that no client waits for an answer any more.
    private static let entryLifetime = Duration.seconds(60)
    private static let sweepInterval = Duration.seconds(1)
    /// The interval of checks while the outcome of any message is unknown.
    private static let pace = Duration.milliseconds(50)

    /// Receives messages, each with the protocols that listen on its topic.
    ///
    /// - Returns: the messages that this node handles at once, in the given order.
    package func hear(_ messages: [(hash: MessageHash, arrivals: [(place: Int, incoming: Incoming)])]) -> [(place: Int, incoming: Incoming)]
    {
        let now = Instant.now
        let taken = state.withLock { state in
            var taken: [(place: Int, incoming: Incoming)] = []
            for message in messages {
                guard let key = MessageKey(message.hash.bytes), let first = message.arrivals.first?.incoming else { continue }
                let entry = Entry(
                    turn: .arrivals(message.arrivals), heardAt: now, sentAt: first.received.message.timestamp, cost: first.cost)
                if state.hear(key, entry, waitingLimit: waitingLimit, at: now) == .handle { taken += message.arrivals }
            }
            return taken
        }
        messageWakeUp.signal()
        return taken
    }

    /// Receives a message that was reassembled from segments, possibly by other nodes too. From now on the outcome that is reported for the last
    /// segment is the outcome of the whole message.
    ///
    /// - Parameters:
    ///   - hash: the hash of the segment that arrived last.
    ///   - handle: called if it becomes this node's turn later.
    /// - Returns: whether this node handles the message at once.
    package func hear(_ whole: ReassembledMessage, completedBy hash: MessageHash, handle: @escaping @Sendable () -> Void) -> Bool {
        guard let key = MessageKey(whole.hash.bytes), let segment = MessageKey(hash.bytes) else { return true }
        let now = Instant.now
        let entry = Entry(turn: .reassembled(handle), heardAt: now, sentAt: whole.sentAt, cost: whole.cost)
        let reception = state.withLock { state in
            // The segment is not marked as finished: a node that lacks another segment still needs this one.
            state.share.abandon(segment)
            state.entries[segment] = nil
            let reception = state.hear(key, entry, waitingLimit: waitingLimit, at: now)
            if state.entries[key] != nil { state.wholes[segment] = key }
            return reception
        }
        messageWakeUp.signal()
        return reception == .handle
    }

    // MARK: Outcomes at this node

    /// The message was handled completely, with or without an answer.
    package func finished(_ hash: MessageHash) {
        settle(hash) { _ in }
    }

    /// The message's effect is being stored, and a client waits for the answer.
    ///
    /// - Parameter giveUp: answers with an error if the outcome is not known in time. The effect may still take place.
    package func handling(_ hash: MessageHash, _ giveUp: @escaping @Sendable () -> Void) {
        state.withLock { state in
            guard let key = state.key(of: hash), state.entries[key] != nil else { return }
            state.entries[key]?.giveUp = giveUp
            state.share.expectAnswer(key, at: .now)
        }
    }

    /// The message's effect is durable, but the answer is not sent yet. This node does not handle the message again, and releases its contents.
    package func committed(_ hash: MessageHash) {
        state.withLock { state in
            guard let key = state.key(of: hash) else { return }
            state.share.handled(key, .committed, at: .now)
            if state.share.isOpen(key) { state.entries[key]?.turn = .none } else { state.entries[key] = nil }
        }
    }

    /// The message was not handled, for lack of room or because it is a segment. Other nodes handle it.
    package func abandoned(_ hash: MessageHash) {
        settle(hash) { $0.isAbandoned = true }
    }

    package func claimedElsewhere(_ hash: MessageHash, _ kind: KindLabel) {
        counters.add(.clusterElsewhere)
        guard let kind = Claim.Kind(kind) else { return }
        settle(hash) { $0.outcome = .claimedElsewhere(kind) }
    }

    /// The message's effect could not be stored; handling it is retried.
    ///
    /// - Parameter giveUp: answers with an error if no other node has answered in time.
    package func failed(_ hash: MessageHash, _ giveUp: @escaping @Sendable () -> Void) {
        settle(hash) {
            $0.outcome = .failed
            $0.giveUp = giveUp
        }
    }

    private func settle(_ hash: MessageHash, _ note: (inout Entry) -> Void) {
        let now = Instant.now
        state.withLock { state in
            guard let key = state.key(of: hash), var entry = state.entries[key], entry.open > 0 else { return }
            note(&entry)
            entry.open -= 1
            state.entries[key] = entry
            guard entry.open == 0 else { return }
            if let outcome = entry.outcome {
                state.share.handled(key, outcome, at: now)
                // Keep the entry, unless the client was already answered with an error.
                if case .failed = outcome, state.share.isOpen(key) { return }
                // Claimed by another node: keep the entry, unless the message is old. An old message that is received again is not answered again.
                if Timestamp.now().since(entry.sentAt) < Self.entryLifetime { return }
                state.share.abandon(key)
            } else if entry.isAbandoned {
                state.share.abandon(key)
            } else {
                state.share.handled(key, .withoutEffect, at: now)
            }
            state.entries[key] = nil
        }
    }

    /// Adds the claim of a message to the transaction of its effect. Messages outside the claim window get no claim: duplicates are then recognised
    /// by the stored registration, or by the deliveries of a request.
    ///
    /// - Parameters:
    ///   - hash: the message's hash; of a segmented message, the hash of the whole, which is the same on every node.
    ///   - sentAt: the message's timestamp; of a segmented message, that of the whole.
    package func claim<Outcome>(
        _ hash: MessageHash, _ kind: KindLabel, sentAt: Timestamp, for command: StoreCommand<Outcome>
    ) -> StoreCommand<Claimed<Outcome>> {
        guard let key = MessageKey(hash.bytes), let kind = Claim.Kind(kind) else { return command.map(Claimed.here) }
        let timestamp = sentAt.rawValue > 0 ? sentAt.wholeSeconds : nil
        let (verdict, takesOver) = state.withLock { state in
            (
                state.window.verdict(timestamp: timestamp, now: Timestamp.now().wholeSeconds + state.clockOffset),
                state.entries[key]?.takesOver ?? false
            )
        }
        guard case .claim(let hour) = verdict else { return command.map(Claimed.unclaimed) }
        return MessageClaims.command(key, hour, Claim(node: first, kind: kind), takesOver: takesOver, command)
    }

    // MARK: Time

    /// Executes the actions of `MessageShare` when they are due. Runs until cancelled.
    func shareMessages() async {
        await withDiscardingTaskGroup { group in
            var leftCount = 0
            for await _ in messageWakeUp {
                while true {
                    let now = Instant.now
                    let (actions, row) = state.withLock { ($0.share.advance(to: now), $0.share.finishedRow(at: now)) }
                    // In separate tasks: the database may hang, and error answers must not wait for it.
                    if let row { group.addTask { await self.write(row) } }
                    if !actions.isEmpty { group.addTask { await self.carryOut(actions) } }
                    let (isIdle, left) = state.withLock { state in
                        if now >= state.nextSweep { forgetOld(&state, at: now) }
                        let isIdle = state.entries.isEmpty && state.share.nextWakeUp == nil && state.share.nextFinishedRow == nil
                        return (isIdle, state.share.leftCount)
                    }
                    counters.add(.clusterLeft, left - leftCount)
                    leftCount = left
                    if isIdle { break }
                    guard (try? await Task.sleep(for: Self.pace)) != nil else { return }
                }
            }
        }
    }

    private func write(_ row: FinishedLog.Row) async {
        let result = await onThread(messageThread) { [database] () throws(StoreError) in try database.write(row) }
        let isCommitted = (try? result.get()) != nil
        state.withLock { $0.share.wroteFinishedRow(isCommitted: isCommitted, at: .now) }
        messageWakeUp.signal()
    }

    /// Removes entries that have expired or that other nodes have finished.
    private func forgetOld(_ state: inout State, at now: Instant) {
        state.nextSweep = now + Self.sweepInterval
        state.entries = state.entries.filter { key, entry in
            if now - entry.heardAt > Self.entryLifetime { state.share.abandon(key) }
            return state.share.isOpen(key)
        }
        state.wholes = state.wholes.filter { state.entries[$0.value] != nil }
        state.waitingCost = state.entries.values.reduce(0) { $0 + ($1.open == 0 ? $1.cost : 0) }
    }

    private func carryOut(_ actions: [MessageShare.Action]) async {
        for case .answerFailure(let key) in actions { answerFailure(key) }
        var actions = actions[...]
        var due: [Turn] = []
        while let action = actions.popFirst() {
            switch action {
            case .readFinishedRows:
                let read = await readFinishedRows()
                actions += state.withLock { state in
                    read ? state.share.finishedRowsRead(at: .now) : state.share.readFailed(at: .now)
                }
            case .lookUpClaims(let keys):
                actions += await lookUpClaims(keys)
            case .handle(let key), .repeatTransaction(let key):
                due.append(begin(key, takesOver: false))
            case .takeOverAnswer(let key):
                counters.add(.clusterAnswered)
                due.append(begin(key, takesOver: true))
            case .answerFailure: break
            }
        }
        var arrivals: [(place: Int, incoming: Incoming)] = []
        for turn in due {
            switch turn {
            case .arrivals(let more):
                arrivals += more.map { arrival in
                    var arrival = arrival
                    arrival.incoming.isRetry = true
                    return arrival
                }
            case .reassembled(let handle): handle()
            case .none: break
            }
        }
        if !arrivals.isEmpty { await attached?.deliver(arrivals) }
    }

    private func answerFailure(_ key: MessageKey) {
        let giveUp = state.withLock { state in
            let giveUp = state.entries[key]?.giveUp
            // A message with an unknown outcome is kept until the outcome is known.
            if state.share.isOpen(key) { state.entries[key]?.giveUp = nil } else { state.entries[key] = nil }
            return giveUp
        }
        giveUp?()
    }

    private func readFinishedRows() async -> Bool {
        while true {
            let known = state.withLock(\.finishedUpTo)
            let result = await onThread(messageThread) { [database, first] () throws(StoreError) in
                try database.finishedRows(after: known, except: first)
            }
            guard case .success(let rows) = result else { return false }
            state.withLock { state in
                for row in rows {
                    state.share.finishedElsewhere(row.prefixes)
                    state.finishedUpTo[row.node] = max(state.finishedUpTo[row.node] ?? row.sequence, row.sequence)
                }
            }
            if rows.count < ClusterDatabase.finishedRowLimit { return true }
        }
    }

    /// Writes all finished messages before the node leaves, so that other nodes do not handle them again.
    func writeFinished() async {
        let later = Instant.now + configuration.times.finishedInterval
        while let row = state.withLock({ $0.share.finishedRow(at: later) }) {
            let result = await onThread(messageThread) { [database] () throws(StoreError) in try database.write(row) }
            guard case .success = result else { return }
            state.withLock { $0.share.wroteFinishedRow(isCommitted: true, at: later) }
        }
    }

    private func lookUpClaims(_ keys: [MessageKey]) async -> [MessageShare.Action] {
        let wanted = state.withLock { state in
            let now = Timestamp.now().wholeSeconds + state.clockOffset
            return keys.compactMap { key -> (hour: ClaimWindow.Hour, key: MessageKey)? in
                guard let sent = state.entries[key]?.sentAt, sent.rawValue > 0,
                    case .claim(let hour) = state.window.verdict(timestamp: sent.wholeSeconds, now: now)
                else { return nil }
                return (hour, key)
            }
        }
        let result = await onThread(messageThread) { [database] () throws(StoreError) in try database.claims(wanted) }
        return state.withLock { state in
            switch result {
            case .success(let claims): state.share.claimsRead(claims, at: .now)
            case .failure: state.share.readFailed(at: .now)
            }
        }
    }

    /// - Returns: how to handle the message now.
    private func begin(_ key: MessageKey, takesOver: Bool) -> Turn {
        state.withLock { state in
            guard var entry = state.entries[key] else {
                state.share.abandon(key)
                return .none
            }
            if !takesOver, entry.outcome == nil { counters.add(.clusterTaken) }
            entry.open = entry.turn.count
            (entry.outcome, entry.isAbandoned, entry.takesOver) = (nil, false, takesOver)
            state.entries[key] = entry
            return entry.turn
        }
    }
}

extension ClusterNode.State {
    /// The key of the message; of a last segment, the key of the reassembled message.
    fileprivate func key(of hash: MessageHash) -> MessageKey? {
        MessageKey(hash.bytes).map { wholes[$0] ?? $0 }
    }

    fileprivate mutating func hear(
        _ key: MessageKey, _ entry: ClusterNode.Entry, waitingLimit: Int, at now: Instant
    ) -> MessageShare.Reception {
        let rank = member.rank(of: key)
        if rank > 0, waitingCost + entry.cost > waitingLimit { return .leftToOthers }
        let reception = share.heard(key, rank: rank, at: now)
        switch reception {
        case .handle:
            entries[key] = entry
            entries[key]?.open = entry.turn.count
        case .wait:
            entries[key] = entry
            waitingCost += entry.cost
        case .duplicate, .leftToOthers: break
        }
        return reception
    }
}
