import Delivery
import Foundation
import Logging
import NodeAPI
import NodeMetrics
import RateLimits
import Core
import Storage
import Synchronization
import Waku
import WakuCrypto

/// Processes the messages of a protocol: decode on all cores, decide and commit, reply. The stages run concurrently.
///
/// A message occupies part of the work limit until it is committed. When little is left, large requests are shed first, then queries, then other
/// requests. Registrations are never shed: `take` waits for them, which is the back-pressure on the relay.
///
/// Messages are committed in the order in which they came in, except for large requests and the rest of requests that turn out to be large: see
/// ``LargeRequestTurns``.
final class WakuIntake<Handler: WakuHandler>: WakuReceiver {
    typealias Message = Decoded<Handler.Command>

    /// A message to be decoded.
    private struct Undecoded: Sendable {
        let incoming: Incoming
        var keys: [SymmetricKey] = []
        /// Whether the topic's keys must be derived, for a second attempt, if the message can't be decrypted without them.
        var mayNeedKeys = false
    }

    let handler: Handler
    let node: NodeServices
    let budget: AsyncSemaphore
    /// Units that requests must leave free for registrations, queries for both, and large requests for all of them: these wait for their turns.
    let reserved: (fromRequests: Int, fromQueries: Int, fromLargeRequests: Int)
    private let waiting = Mutex(MessagesAwaitingKeys(capacity: IntakeLimits.waiting))
    /// Topics whose waiting messages are being decoded, or wait for keys.
    private let activeTopics = Atomic(0)
    private let queries = Mutex(WaitingQueries<Message>())
    /// Used only by a single node; with several nodes `MessageShare` decides.
    private let deadlines = Mutex(AnswerDeadlines())
    private let segments = Mutex(TracedSegments())
    let turns: Mutex<LargeRequestTurns<Part>>

    package init(_ handler: Handler, _ node: NodeServices) {
        self.handler = handler
        self.node = node
        budget = AsyncSemaphore(node.workLimit)
        reserved = (node.workLimit / 4, node.workLimit / 2, node.workLimit * 3 / 4)
        turns = Mutex(LargeRequestTurns(capacity: node.workLimit))
    }

    package func take(_ incoming: [Incoming]) async {
        var ready: [Undecoded] = []
        for incoming in incoming {
            switch handler.keys(of: incoming.tag) {
            case .known(let keys): ready.append(Undecoded(incoming: incoming, keys: keys))
            case .missingUnlessOwn: ready.append(Undecoded(incoming: incoming, mayNeedKeys: true))
            case .missing: decodeLater(incoming)
            }
        }
        await decode(ready)
    }

    // MARK: Keys

    /// Requests the topic's keys in a task of its own, which then decodes and submits all messages that wait for them.
    private func decodeLater(_ incoming: Incoming) {
        let tag = incoming.tag
        let charge = handler.charge(of: tag, at: node.now())
        let addition = waiting.withLock { $0.add(incoming, charge: charge) }
        for message in addition.displaced {
            handler.displaced(.topicKeys, handler.charge(of: message.tag, at: node.now()).standing)
            drop(message.hash, .shedWaitingQuery, message.times.trace)
        }
        guard addition.isFirst else { return }
        activeTopics.add(1, ordering: .relaxed)
        Task {
            let keys: [SymmetricKey]?
            var failure = Counter.shedWaitingQuery
            do {
                keys = try await handler.deriveKeys(of: tag)
            } catch {
                keys = nil
                failure = .failedTopicKey
            }
            let messages = waiting.withLock { $0.take(tag) }
            if let keys {
                await submit(decode(messages.map { Undecoded(incoming: $0, keys: keys) }[...]))
            } else {
                for message in messages { drop(message.hash, failure, message.times.trace) }
            }
            activeTopics.subtract(1, ordering: .relaxed)
        }
    }

    // MARK: Decoding

    /// Decodes on all cores, and submits in the order of `undecoded`.
    private func decode(_ undecoded: [Undecoded]) async {
        let cores = IntakeLimits.cores
        let size = min(IntakeLimits.decodingChunk, (undecoded.count + cores - 1) / cores)
        guard size < undecoded.count else { return await submit(decode(undecoded[...])) }
        var starts = stride(from: 0, to: undecoded.count, by: size).makeIterator()
        await withTaskGroup(of: (Int, [Message]).self) { group in
            func addNext() {
                guard let start = starts.next() else { return }
                let chunk = undecoded[start..<min(start + size, undecoded.count)]
                group.addTask { (start, self.decode(chunk)) }
            }
            // One task more than cores, so that no core idles while messages are submitted.
            for _ in 0...cores { addNext() }
            var decoded: [Int: [Message]] = [:]
            var next = 0
            for await (start, messages) in group {
                decoded[start] = messages
                while let messages = decoded.removeValue(forKey: next) {
                    await submit(messages)
                    next += size
                }
                addNext()
            }
        }
    }

    /// Messages that can't be decoded are counted and left out.
    private func decode(_ chunk: ArraySlice<Undecoded>) -> [Message] {
        let time = node.now()
        var invalidCount = 0
        let messages: [Message] = chunk.compactMap { message in
            let incoming = message.incoming
            do throws(Drop) {
                let decoded = try handler.decode(incoming, keys: message.keys, at: time)
                if let trace = incoming.times.trace, let whole = decoded.whole { trace.link(segments.withLock { $0.take(whole) }) }
                return decoded
            } catch {
                if let trace = incoming.times.trace, let whole = error.segmentOf { segments.withLock { $0.add(trace, of: whole) } }
                if message.mayNeedKeys, error.counter == .droppedUndecryptable {
                    decodeLater(incoming)
                } else {
                    drop(incoming.hash, error.counter, isLeftToOthers: error.isLeftToOthers, incoming.times.trace)
                    if error.counter.isAfterOpening { invalidCount += 1 }
                }
                return nil
            }
        }
        node.counters.opened(messages.lazy.map { (kind: $0.kind, times: $0.times) }, others: invalidCount)
        return messages
    }

    private func drop(_ hash: MessageHash, _ counter: Counter, isLeftToOthers: Bool = false, _ trace: MessageTrace? = nil) {
        // Invalid messages leave no trace: a flood of them would fill the ring.
        if counter.mayBeHandledLater, counter != .segment { trace?.fail(counter) }
        // Recorded before the counter, since tests and operators may stop the node once they see the count.
        if counter.mayBeHandledLater || (isLeftToOthers && node.cluster.isShared) {
            node.cluster.abandoned(hash)
        } else {
            node.handled.note(hash)
        }
        node.counters.add(counter)
        node.logger.debug("message dropped", metadata: ["message": "\(hash)", "reason": "\(counter.name)"])
    }

    // MARK: Rules and commit

    /// All nodes receive each segment as a separate message, and each reassembles the whole. Only then is it decided which node handles it.
    private func submit(_ messages: [Message]) async {
        await accept(
            messages.filter { message in
                guard let whole = message.whole else { return true }
                return node.cluster.hear(whole, completedBy: message.hash) { Task { await self.accept([message]) } }
            })
    }

    /// Submits registrations and requests to the store, and queries to be answered after the commits before them.
    private func accept(_ messages: [Message]) async {
        var changes: [Message] = []
        var queries: [Message] = []
        func submit() {
            if !changes.isEmpty { commit(changes) }
            if !queries.isEmpty { answerSoon(queries) }
            (changes, queries) = ([], [])
        }
        for message in messages {
            switch message.kind {
            case .query:
                guard budget.tryAcquire(message.cost, leaving: reserved.fromQueries) else {
                    drop(message.hash, .shedQuery, message.times?.trace)
                    continue
                }
                queries.append(message)
            case .request:
                let isLarge = handler.isLarge(message)
                guard budget.tryAcquire(message.cost, leaving: isLarge ? reserved.fromLargeRequests : reserved.fromRequests) else {
                    drop(message.hash, .shedRequest, message.times?.trace)
                    continue
                }
                changes.append(message)
            case .registration:
                if !budget.tryAcquire(message.cost) {
                    // Units are released only by submitted messages: batches that wait while they hold units could wait for each other.
                    submit()
                    await budget.acquire(message.cost)
                }
                changes.append(message)
            }
        }
        submit()
    }

    private func commit(_ messages: [Message]) {
        let time = node.now()
        let answers = messages.map { message in PendingAnswer { [handler] in handler.finish(message, .failure($0)) } }
        expect(answers, to: messages)
        var whole: [(message: Message, answer: PendingAnswer)] = []
        for (message, answer) in zip(messages, answers) {
            if handler.isLarge(message), let turns = handler.turns(of: message, after: nil, at: time) {
                add(Part(message: message, answer: answer, turns: turns, command: command(of: message, at: time), isFirst: true))
            } else {
                whole.append((message, answer))
            }
        }
        if !whole.isEmpty { commit(whole.map(\.message), whole.map(\.answer), at: time) }
        if whole.count < messages.count { commitNextParts() }
    }

    private func commit(_ messages: [Message], _ answers: [PendingAnswer], at time: Timestamp) {
        node.store.submit(messages.map { command(of: $0, at: time) }) { [self] results in
            // Before the notifications are queued.
            for (message, result) in zip(messages, results) {
                if let trace = message.times?.trace, (try? result.get())?.outcome != nil { trace.mark(.committed) }
            }
            // Called in the order of commits, so a device's notifications are queued in that order.
            let queued = results.flatMap { result in (try? result.get())?.outcome.map(handler.queued) ?? [] }
            node.counters.add(.notificationQueued, queued.count)
            node.delivery.enqueue(queued)
            Task {
                var hasMore = false
                for ((message, answer), result) in zip(zip(messages, answers), results) {
                    if addRest(of: message, answer: answer, after: result) {
                        hasMore = true
                        continue
                    }
                    finish(message, answer: answer, result: result)
                    budget.release(message.cost)
                }
                if hasMore { commitNextParts() }
            }
        }
    }

    // MARK: Answers

    /// Requests are answered within ``NodeServices/answerLimit``, even if the store takes longer. A registration's answer waits for the outcome: a
    /// registration that was answered with an error must not be stored.
    private func expect(_ answers: [PendingAnswer], to messages: [Message]) {
        var timed: [(answer: PendingAnswer, deadline: ContinuousClock.Instant)] = []
        for (message, answer) in zip(messages, answers) where message.kind == .request {
            if node.cluster.isShared {
                node.cluster.handling(message.hash) { [weak self] in self?.giveUp([answer]) }
            } else {
                timed.append((answer, (message.times?.received ?? .now) + node.answerLimit))
            }
        }
        guard !timed.isEmpty, deadlines.withLock({ $0.add(timed) }) else { return }
        Task {
            var isEmpty = false
            while !isEmpty {
                try? await Task.sleep(for: AnswerDeadlines.interval)
                let due = deadlines.withLock { deadlines in
                    let due = deadlines.due(at: .now)
                    isEmpty = deadlines.isEmpty
                    return due
                }
                giveUp(due)
            }
        }
    }

    private func giveUp(_ answers: [PendingAnswer]) {
        let error = StoreError(code: .unavailable, message: "the database has not answered in time")
        let count = answers.count { $0.fail(error) }
        if count > 0 { node.errors.log("requests answered with an error", reason: error.message, count: count) }
    }

    func claimed(_ command: StoreCommand<Handler.Outcome>, for message: Message) -> StoreCommand<Claimed<Handler.Outcome>> {
        guard let sentAt = message.sentAt else { return command.map(Claimed.unclaimed) }
        return node.cluster.claim(message.wholeHash, message.kind, sentAt: sentAt, for: command)
    }

    /// Claims the message, and records the decision in its trace.
    private func command(of message: Message, at time: Timestamp) -> StoreCommand<Claimed<Handler.Outcome>> {
        let command = claimed(handler.change(message, at: time), for: message)
        guard let trace = message.times?.trace else { return command }
        return command.whenDecided { trace.mark(.decided) }
    }

    func finish(_ message: Message, answer: PendingAnswer, result: Result<Claimed<Handler.Outcome>, StoreError>) {
        switch result {
        case .success(.here(let outcome)):
            node.counters.reached(.durable, message.kind, times: message.times)
            node.cluster.committed(message.hash)
            if answer.take() { handler.finish(message, .success(outcome)) }
        case .success(.unclaimed(let outcome)):
            node.counters.reached(.durable, message.kind, times: message.times)
            // Before the answer, which may be delayed, so that no other node handles the message meanwhile.
            node.cluster.finished(message.hash)
            if answer.take() { handler.finish(message, .success(outcome)) }
        case .success(.elsewhere(let kind)): node.cluster.claimedElsewhere(message.hash, kind)
        case .failure(let error):
            message.times?.trace?.fail(Counter.failedStore)
            node.counters.add(.failedStore)
            node.errors.log("failed to store message", reason: error.message)
            // Another node may still handle the message.
            node.cluster.failed(message.hash) { _ = answer.fail(error) }
        }
    }

    // MARK: Queries

    private func answerSoon(_ messages: [Message]) {
        let interval = node.cluster.transactionInterval
        if let delay = queries.withLock({ $0.add(messages, interval: interval, at: .now) }) { answerWaiting(after: delay) }
    }

    private func answerWaiting(after delay: Duration) {
        guard delay > .zero else { return answerWaiting() }
        Task {
            try? await Task.sleep(for: delay)
            answerWaiting()
        }
    }

    /// Answers the waiting queries once all changes submitted before them are durable. If that takes long, because the disk stalls, they see the present
    /// rows: no change that these lack was acknowledged.
    private func answerWaiting() {
        let end = queries.withLock { $0.begin(at: .now) }
        node.store.afterCommits { self.answerWaiting(upTo: end) }
        Task {
            try? await Task.sleep(for: IntakeLimits.commitWaitLimit)
            if !queries.withLock({ $0.isTaken(upTo: end) }) { answerWaiting(upTo: end) }
        }
    }

    private func answerWaiting(upTo end: Int) {
        node.store.onReader {
            let taken = self.queries.withLock { $0.take(upTo: end, at: .now) }
            if taken.isMore { self.answerWaiting(upTo: end) }
            if let delay = taken.next { self.answerWaiting(after: delay) }
            if !taken.queries.isEmpty { self.answer(taken.queries) }
        }
    }

    private func answer(_ messages: [Message]) {
        let time = node.now()
        do throws(StoreError) {
            for (message, result) in zip(messages, try node.store.readEach(messages.map { handler.answer($0, at: time) })) {
                // A query that fails does not affect the others.
                do throws(StoreError) {
                    let reply = try result.get()
                    // Without a lease the rows may be those of a server that was replaced.
                    if node.cluster.failure != nil {
                        node.cluster.failed(message.hash) {}
                        continue
                    }
                    message.times?.trace?.mark(.decided)
                    // Before the answer, so that no other node handles the query meanwhile.
                    node.cluster.finished(message.hash)
                    handler.answered(message, reply)
                    if let reply { node.replies.publish(reply) } else { node.handled.note(message.hash) }
                } catch {
                    fail([message], error)
                }
            }
        } catch {
            fail(messages, error)
        }
        for message in messages { budget.release(message.cost) }
    }

    private func fail(_ messages: [Message], _ error: StoreError) {
        node.counters.add(.failedStore, messages.count)
        node.errors.log("failed to answer query", reason: error.message, count: messages.count)
        for message in messages {
            message.times?.trace?.fail(Counter.failedStore)
            node.cluster.failed(message.hash) {}
        }
    }

    // MARK: Figures

    package var load: (depth: Int, limit: Int) { (budget.acquiredCount, budget.capacity) }
    package var waitingForKeys: (depth: Int, limit: Int) { (waiting.withLock { $0.cost }, IntakeLimits.waiting) }
    package var isIdle: Bool { budget.isUnused && activeTopics.load(ordering: .relaxed) == 0 }
}

enum IntakeLimits {
    /// Limit of messages that wait for a topic key, in units of 4 KiB, at least one for each: see ``MessagesAwaitingKeys``.
    static let waiting = 16_384
    /// How long a query waits for the changes that were submitted before it.
    static let commitWaitLimit = Duration.seconds(1)
    /// Messages decoded without a suspension, so that other tasks get their turn.
    static let decodingChunk = 16
    /// Read once: on Linux this reads files.
    static let cores = ProcessInfo.processInfo.activeProcessorCount
}

extension Counter {
    /// Whether a message dropped for this reason may be handled when it comes again after a restart.
    fileprivate var mayBeHandledLater: Bool { Self.laterCounters.contains(self) }

    private static let laterCounters: Set<Counter> = [
        .segment, .shedWaitingQuery, .shedQuery, .shedRequest, .failedTopicKey, .failedStore,
    ]
}

/// Makes a ``WakuIntake`` for each protocol that listens on topics.
struct IntakeMaker: ReceiverMaking {
    func receiver(_ handler: some WakuHandler, _ node: NodeServices) -> any WakuReceiver {
        WakuIntake(handler, node)
    }
}
