package import Core

/// Divides messages among the nodes that receive them, so that each takes effect once and is answered, even when a node is dead, slow, or misses
/// messages.
///
///     heard ──(rank 0)──────────────────────────────▶ handling ──(committed)──▶ answering ──(answered)──▶ finished
///       │                                              ▲  │ │ └──(no effect)────────────────────────────▶ finished
///       │                                              │  │ └────(failed)──▶ failed ──(pause)──▶ checked again ──(deadline)──▶ answered with an error
///       └─(rank k)─▶ waiting ──(k × 700 ms: neither    │  └──────(unknown)─▶ unresolved ──(pause)──▶ the same transaction again
///                       │        finished nor claimed)─┘
///                       ├──(finished by another node)──▶ forgotten
///                       └──(claimed)──▶ watching ──(not finished when its answer was due)──▶ answering
///
/// - Waiting costs nothing: the message stays undecrypted, and most are found in another node's row of finished messages, one read for all that
///   is due. Claims are looked up only for the rest.
/// - Queries take part like all others. An earlier design let only rank 0 answer, and rank 1 after a lease: queries that rank 0 did not receive
///   stayed unanswered, as did all of its queries for a lease after it died.
/// - A transaction with unknown outcome (COMMIT without a reply, a warning of cancelled replication) is resolved by running it again, with the
///   same claim: the insert waits for the first one if that is still running, and returns the claim that exists. A read would not wait.
/// - The database may hang at any step: a message with a waiting client (``expectAnswer(_:at:)``) is answered with an error at the deadline,
///   in every stage. Its effect may still be committed; then it is finished.
/// - A message is answered with an error only by a node that tried to store it. Another node may have stored it meanwhile: see <doc:Cluster>.
package struct MessageShare: Sendable {
    package enum Action: Hashable, Sendable {
        /// Read the rows of finished messages that were added since the last read, pass them to ``finishedElsewhere(_:)``, then call
        /// ``finishedRowsRead()``; ``readFailed(at:)`` when that is not possible.
        case readFinishedRows
        /// Look these up in the claims, then ``claimsRead(_:at:)`` or ``readFailed(at:)``.
        case lookUpClaims([MessageKey])
        /// Decrypt, decide, and commit with the claim first. Then ``handled(_:_:at:)``.
        case handle(MessageKey)
        /// Run the transaction with the unknown outcome again. Then ``handled(_:_:at:)``.
        case repeatTransaction(MessageKey)
        /// Another node committed it but did not publish its answer in time: in one transaction, transfer the claim to this node if it still exists,
        /// and read the rows for the answer. Once that is **committed** publish the answer, then ``answered(_:)``; otherwise
        /// ``handled(_:_:at:)`` with ``Outcome/failed``. Reading alone is not enough: a primary that was replaced may show a claim that no standby has.
        case takeOverAnswer(MessageKey)
        /// It could not be stored, or its outcome is unknown at the deadline: INTERNAL_ERROR. No other answer of this node follows.
        case answerFailure(MessageKey)
    }

    package enum Reception: Hashable, Sendable {
        case handle
        case wait
        /// Already open here, or finished by this or another node.
        case duplicate
        /// Too many messages are open: left to the nodes that rank before this one.
        case leftToOthers
    }

    package enum Outcome: Hashable, Sendable {
        /// Effect and claim are durable, now or by an earlier run of the same transaction; the answer is not yet published.
        case committed
        /// Dropped, limited, refused, or an answered query.
        case withoutEffect
        /// Another node's claim exists.
        case claimedElsewhere(Claim.Kind)
        /// Nothing was committed.
        case failed
        case unknown
    }

    private enum Stage {
        case waiting, handling, unresolved, failed, answering
        case watching(Claim.Kind)
    }

    private struct Open {
        let heardAt: Instant
        let rank: Int
        var stage: Stage
        /// Whether a client waits for its answer until the deadline.
        var isAwaited = false
        /// Whether it was answered with an error, at the deadline.
        var isAnswered = false
        /// Another tick's entry in ``due`` is void.
        var tick: DueMessages.Tick?
    }

    private let configuration: ClusterConfiguration
    private var open: [MessageKey: Open] = [:]
    private var due = DueMessages()
    /// When messages are answered with an error at the latest.
    private var deadlines = DueMessages()
    /// Due, and to be compared with the rows of finished messages by the next read.
    private var toCheck: [MessageKey] = []
    /// Messages being compared, or looked up in the claims.
    private var checking: [MessageKey] = []
    private var isReading = false
    private var finished: GenerationalCache<UInt64, Void>
    /// The messages that other nodes are to be told of.
    package var log: FinishedLog
    /// The number of messages that were left to other nodes, which have finished them.
    package private(set) var leftCount = 0

    package init(_ node: NodeID, configuration: ClusterConfiguration) {
        self.configuration = configuration
        finished = GenerationalCache(capacity: configuration.finishedCacheCapacity)
        log = FinishedLog(node, configuration: configuration)
    }

    /// The number of messages with an open outcome.
    package var openCount: Int { open.count }
    package func isOpen(_ key: MessageKey) -> Bool { open[key] != nil }
    /// When ``advance(to:)`` has something to do.
    package var nextWakeUp: Instant? { [due.next, deadlines.next].compactMap(\.self).min() }

    // MARK: Messages

    /// - Parameter rank: ``ClusterMember/rank(of:)``.
    package mutating func heard(_ key: MessageKey, rank: Int, at now: Instant) -> Reception {
        guard open[key] == nil, !finished.contains(key.prefix) else { return .duplicate }
        if rank == 0 {
            open[key] = Open(heardAt: now, rank: 0, stage: .handling)
            return .handle
        }
        guard open.count < configuration.openMessageLimit else { return .leftToOthers }
        open[key] = Open(heardAt: now, rank: rank, stage: .waiting)
        look(at: key, now + configuration.rankDelay * rank)
        return .wait
    }

    /// A client waits for the answer of a message that this node handles, and the answer depends on the outcome.
    package mutating func expectAnswer(_ key: MessageKey, at now: Instant) {
        guard let message = open[key], !message.isAwaited else { return }
        let isAwaited = setDeadline(of: key, message, at: now)
        open[key]?.isAwaited = isAwaited
    }

    package mutating func handled(_ key: MessageKey, _ outcome: Outcome, at now: Instant) {
        guard let message = open[key] else { return }
        switch outcome {
        case .committed where message.isAnswered: finish(key)
        case .claimedElsewhere where message.isAnswered, .failed where message.isAnswered: forget(key)
        case .committed: open[key]?.stage = .answering
        case .withoutEffect: finish(key)
        case .claimedElsewhere(let kind):
            open[key]?.stage = .watching(kind)
            look(at: key, max(now, answerDue(message, kind)))
        case .failed:
            open[key]?.stage = .failed
            look(at: key, now + configuration.retryInterval)
            if !message.isAwaited { _ = setDeadline(of: key, message, at: now) }
        case .unknown:
            open[key]?.stage = .unresolved
            look(at: key, now + configuration.retryInterval)
        }
    }

    /// Records that the answer was published.
    package mutating func answered(_ key: MessageKey) {
        if open[key] != nil { finish(key) }
    }

    /// Drops a message without handling it, because of overload: other nodes take it.
    package mutating func abandon(_ key: MessageKey) {
        open[key] = nil
    }

    // MARK: Time

    package mutating func advance(to now: Instant) -> [Action] {
        var actions: [Action] = []
        for (key, _) in deadlines.popDue(at: now) {
            guard let message = open[key], !message.isAnswered else { continue }
            switch message.stage {
            case .failed:
                forget(key)
                actions.append(.answerFailure(key))
            case .handling where message.isAwaited, .unresolved where message.isAwaited:
                open[key]?.isAnswered = true
                actions.append(.answerFailure(key))
            case .waiting, .watching, .handling, .unresolved, .answering: break
            }
        }
        for (key, tick) in due.popDue(at: now) {
            guard let message = open[key], message.tick == tick else { continue }
            open[key]?.tick = nil
            switch message.stage {
            case .waiting, .watching: toCheck.append(key)
            case .unresolved: actions.append(.repeatTransaction(key))
            case .failed where now - message.heardAt >= configuration.failureAnswerDelay:
                forget(key)
                actions.append(.answerFailure(key))
            case .failed: toCheck.append(key)
            case .handling, .answering: break
            }
        }
        return actions + startReading()
    }

    // MARK: Results of other nodes

    /// - Parameter prefixes: the key prefixes in a row of finished messages of another node.
    package mutating func finishedElsewhere(_ prefixes: [UInt64]) {
        for prefix in prefixes { finished.set((), of: prefix) }
    }

    package mutating func finishedRowsRead() -> [Action] {
        checking = withoutFinished(checking)
        guard checking.isEmpty else { return [.lookUpClaims(checking)] }
        isReading = false
        return startReading()
    }

    /// - Parameter claims: the claims found for the keys that were looked up.
    package mutating func claimsRead(_ claims: [MessageKey: Claim], at now: Instant) -> [Action] {
        let keys = checking
        (checking, isReading) = ([], false)
        var actions: [Action] = []
        for key in keys {
            guard let message = open[key] else { continue }
            switch message.stage {
            case .waiting, .watching, .failed: break
            case .handling, .unresolved, .answering: continue
            }
            guard let claim = claims[key] else {
                open[key]?.stage = .handling
                actions.append(.handle(key))
                continue
            }
            let answerDue = answerDue(message, claim.kind)
            if now - message.heardAt >= configuration.answerExpiry {
                open[key] = nil
            } else if now >= answerDue {
                open[key]?.stage = .answering
                actions.append(.takeOverAnswer(key))
            } else {
                open[key]?.stage = .watching(claim.kind)
                look(at: key, answerDue)
            }
        }
        return actions + startReading()
    }

    package mutating func readFailed(at now: Instant) -> [Action] {
        let keys = checking
        (checking, isReading) = ([], false)
        for key in keys { look(at: key, now + configuration.retryInterval) }
        return startReading()
    }

    // MARK: -

    /// The time by which a message must be answered; then the node of this rank publishes. A node of rank 0 that lost the claim counts as the next
    /// one.
    private func answerDue(_ message: Open, _ kind: Claim.Kind) -> Instant {
        let time =
            switch kind {
            case .registration: configuration.replyDelay + configuration.registrationAnswerTime
            case .request: configuration.requestAnswerTime
            }
        return message.heardAt + time + configuration.rankDelay * max(message.rank, 1)
    }

    private mutating func look(at key: MessageKey, _ time: Instant) {
        open[key]?.tick = due.add(key, at: time)
    }

    /// - Returns: false when the deadline has passed.
    private mutating func setDeadline(of key: MessageKey, _ message: Open, at now: Instant) -> Bool {
        let deadline = message.heardAt + configuration.failureAnswerDelay
        guard deadline > now else { return false }
        _ = deadlines.add(key, at: deadline)
        return true
    }

    /// Others may still handle it.
    private mutating func forget(_ key: MessageKey) {
        open[key] = nil
        finished.set((), of: key.prefix)
    }

    private mutating func finish(_ key: MessageKey) {
        open[key] = nil
        finished.set((), of: key.prefix)
        log.add(key)
    }

    private mutating func startReading() -> [Action] {
        guard !isReading else { return [] }
        // Most are in rows that were read for earlier messages.
        (checking, toCheck) = (withoutFinished(toCheck), [])
        guard !checking.isEmpty else { return [] }
        isReading = true
        return [.readFinishedRows]
    }

    /// Closes the messages that other nodes have finished, and returns the rest.
    private mutating func withoutFinished(_ keys: [MessageKey]) -> [MessageKey] {
        keys.filter { key in
            guard open[key] != nil else { return false }
            guard finished.contains(key.prefix) else { return true }
            open[key] = nil
            leftCount += 1
            return false
        }
    }
}
