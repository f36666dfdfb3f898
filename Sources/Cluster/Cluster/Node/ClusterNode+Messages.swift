package import NodeAPI
package import NodeMetrics
package import Core
package import Storage
import Synchronization
package import Waku

/// Messages: which node handles each, and when another node takes over.
extension ClusterNode {
    /// How long a message's outcome is awaited. After that no client waits for an answer any more.
    static let entryLifetime = Duration.seconds(60)

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
                let entry = ClusterMessage(
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
    /// - Parameter handle: called if it becomes this node's turn later.
    /// - Returns: whether this node handles the message at once.
    package func hear(_ whole: ReassembledMessage, completedBy hash: MessageHash, handle: @escaping @Sendable () -> Void) -> Bool {
        guard let key = MessageKey(whole.hash.bytes), let segment = MessageKey(hash.bytes) else { return true }
        let now = Instant.now
        let entry = ClusterMessage(turn: .reassembled(handle), heardAt: now, sentAt: whole.sentAt, cost: whole.cost)
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

    private func settle(_ hash: MessageHash, _ note: (inout ClusterMessage) -> Void) {
        let now = Instant.now
        state.withLock { state in
            guard let key = state.key(of: hash) else { return }
            state.settle(key, at: now, clock: .now(), note)
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
        return MessageClaims.command(key, hour: hour, claim: Claim(node: first, kind: kind), takesOver: takesOver, with: command)
    }

    /// Writes all finished messages before the node leaves, so that other nodes do not handle them again.
    func writeFinished() async {
        // One row after the other, without the time between them.
        var time = Instant.now + configuration.times.finishedInterval
        while let row = state.withLock({ $0.share.log.row(at: time) }) {
            let result = await onThread(messageThread) { database throws(StoreError) in try database.write(row) }
            guard case .success = result else { return }
            state.withLock { $0.share.log.wrote(isCommitted: true, at: time) }
            time += configuration.times.finishedInterval
        }
    }
}

extension ClusterState {
    /// The key of the message; of a last segment, the key of the reassembled message.
    fileprivate func key(of hash: MessageHash) -> MessageKey? {
        MessageKey(hash.bytes).map { wholes[$0] ?? $0 }
    }

    /// Records that one protocol has handled the message. When all have, the outcome is passed on.
    ///
    /// - Parameter note: records what the protocol reported.
    mutating func settle(_ key: MessageKey, at now: Instant, clock: Timestamp, _ note: (inout ClusterMessage) -> Void) {
        guard var entry = entries[key], entry.open > 0 else { return }
        note(&entry)
        entry.open -= 1
        entries[key] = entry
        guard entry.open == 0 else { return }
        if let outcome = entry.outcome {
            share.handled(key, outcome, at: now)
            // Keep the entry, unless the client was already answered with an error.
            if case .failed = outcome, share.isOpen(key) { return }
            // Claimed by another node: keep the entry, unless the message is old. An old message that is received again is not answered again.
            if clock.since(entry.sentAt) < ClusterNode.entryLifetime { return }
            share.abandon(key)
        } else if entry.isAbandoned {
            share.abandon(key)
        } else {
            share.handled(key, .withoutEffect, at: now)
        }
        entries[key] = nil
    }

    fileprivate mutating func hear(
        _ key: MessageKey, _ entry: ClusterMessage, waitingLimit: Int, at now: Instant
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
