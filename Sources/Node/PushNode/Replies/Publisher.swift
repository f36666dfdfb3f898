import NodeAPI
import Logging
import NodeMetrics
import Core
import Synchronization
import Waku

/// Seals answers on all cores and publishes them concurrently. Retries for a while if the relay fails, and confirms that answers arrived as far as
/// stores can tell, which ``Confirmations`` decides.
final class Publisher: ReplyPublishing {
    /// An answer to publish, for the first time or again.
    struct Item: Sendable {
        let answer: Reply
        /// The messages of earlier publications that nothing confirmed.
        var publications: [[Confirmations.Message]] = []
        /// When it was added to the queue.
        var addedAt = Duration.zero
        /// When it was first published; nil before.
        var publishedAt: Duration?
        /// Since when it is held until it is due; nil if it is not held.
        var heldSince: Duration?
        /// How long it was held.
        var heldFor = Duration.zero
    }

    /// Limits of waiting answers: see ``AnswerBuffer``.
    static let capacity = 10_000
    private static let byteCapacity = 64 << 20
    private static let concurrency = 32
    /// An answer that ``Reply/expires`` is dropped when it has waited for this time. Clients wait 3 s and ask again; late
    /// answers still help them for a while.
    static let answerLifetime = Duration.seconds(10)
    private static let publicationTimeout = Duration.seconds(10)
    /// Number of answers that a task seals between yields.
    private static let yieldInterval = 8

    /// Between attempts to publish an answer.
    private static let backoff = ExponentialBackoff(initial: .milliseconds(100), maximum: .seconds(2))

    private let relay: any Relay
    private let seen: SeenMessages
    private let handled: HandledMessages
    private let counters: Counters
    private let logger: Logger
    private let queue: AnswerQueue
    private let replyDelay: Duration
    private let answerLifetime: Duration
    private let confirmations: Mutex<Confirmations>
    private let isClockWrong: @Sendable () -> Bool
    /// Signals that an answer waits for its look-up, after none did.
    private let wakeUp = WakeUpSignal()
    private let start = ContinuousClock.now

    /// - Parameters:
    ///   - seen: gets the hash of each message before it is published, so that it is ignored when it comes back.
    ///   - handled: gets the hashes of messages that were answered.
    ///   - replyDelay: see ``NodeConfiguration/replyDelay``.
    ///   - answerLifetime: see ``Publisher/answerLifetime``.
    ///   - isClockWrong: whether relays drop this node's messages because of their timestamps, which is not the publishing relay's fault.
    init(
        relay: any Relay, seen: SeenMessages, handled: HandledMessages, counters: Counters, logger: Logger,
        replyDelay: Duration = .zero, answerLifetime: Duration = Publisher.answerLifetime,
        confirmation: Confirmations.Configuration = Confirmations.Configuration(),
        isClockWrong: @escaping @Sendable () -> Bool = { false }
    ) {
        self.relay = relay
        self.counters = counters
        self.logger = logger
        self.seen = seen
        self.handled = handled
        self.replyDelay = replyDelay
        self.answerLifetime = answerLifetime
        self.isClockWrong = isClockWrong
        queue = AnswerQueue(AnswerBuffer(capacity: Self.capacity, byteCapacity: Self.byteCapacity))
        confirmations = Mutex(Confirmations(configuration: confirmation))
    }

    /// Publishes an answer as soon as it is due: see ``NodeConfiguration/replyDelay``.
    package func publish(_ answer: Reply) {
        let now = uptime
        counters.add(.answerLost, queue.put(Item(answer: answer, addedAt: now), due: due(answer), at: now))
    }

    /// An answer to a query or request goes to the topic of a new key, to which a client subscribes only after it asked. status-go notes a query or
    /// registration as its own only once its sending has ended, and ignores an answer that came before.
    private func due(_ answer: Reply) -> Duration? {
        guard replyDelay > .zero else { return nil }
        return answer.times.map { start.duration(to: $0.received) + replyDelay }
    }

    /// Number of answers to be published.
    var waitingCount: Int { queue.count }
    /// Number of answers to be looked up.
    var unconfirmedCount: Int { confirmations.withLock { $0.count } }
    var confirmationLimit: Int { confirmations.withLock { $0.limit } }

    /// Ends the queue: ``run()`` returns when the last answer was published. Later confirmations are skipped.
    func finish() {
        queue.finish()
    }

    func run() async {
        // Cancelled when this function returns.
        async let _: Void = confirm()
        async let _: Void = queue.releaseHeld { self.uptime }
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                for _ in 0..<Self.concurrency {
                    group.addTask { await self.work() }
                }
            }
        } onCancel: {
            queue.finish(abandoning: true)
        }
    }

    private func work() async {
        var count = 0
        while let item = await queue.next() {
            await send(item)
            // A relay that publishes without suspending would occupy the thread.
            count += 1
            if count.isMultiple(of: Self.yieldInterval) { await Task.yield() }
        }
    }

    private var uptime: Duration { start.duration(to: .now) }

    // MARK: Publishing

    private func send(_ item: Item) async {
        let answer = item.answer
        guard !answer.expires || uptime - item.addedAt < answerLifetime else { return lose(item) }
        let publishedAt = item.publishedAt ?? uptime
        let messages = answer.seal(.now())
        // An answer that did not arrive through one relay is published through another.
        let usedPlaces = Confirmations.Sent.places(of: item.publications)
        var unconfirmed: [Confirmations.Message] = []
        var canBeLookedUp = true
        for message in messages {
            let hash = message.hash(on: answer.pubsubTopic)
            _ = seen.insert(hash)
            guard
                let placed = await publish(
                    message, on: answer.pubsubTopic, avoiding: usedPlaces, until: publishedAt + Self.publicationTimeout)
            else { return lose(item) }
            switch placed.publication {
            case .confirmed where placed.canBeChecked:
                unconfirmed.append(Confirmations.Message(hash: hash, places: placed.places, isAcknowledged: true))
            case .confirmed: break
            case .unconfirmed(let canBe):
                unconfirmed.append(Confirmations.Message(hash: hash, places: placed.places))
                canBeLookedUp = canBeLookedUp && (canBe || placed.canBeChecked)
            }
        }
        if let question = answer.question { handled.note(question) }
        if item.publishedAt == nil {
            counters.reached(.answered, answer.kind, times: answer.times, without: item.heldFor)
            if item.heldSince != nil { counters.held(answer.kind, for: item.heldFor, answer.times) }
        }
        counters.add(item.publishedAt == nil ? .answerPublished : .answerRepeated)
        if unconfirmed.isEmpty {
            counters.add(.answerConfirmed)
        } else if canBeLookedUp {
            // The trace ends before the look-up.
            var answer = answer
            answer.times?.trace = nil
            lookUpLater(
                Confirmations.Sent(answer: answer, publications: item.publications + [unconfirmed], publishedAt: publishedAt))
        } else {
            counters.add(.answerUnconfirmed)
        }
    }

    private func lose(_ item: Item) {
        counters.add(item.publishedAt == nil ? .answerLost : .answerUnconfirmed)
        item.answer.times?.trace?.fail(Counter.answerLost)
    }

    /// Publishes a message, with retries; nil if that failed.
    private func publish(
        _ message: WakuMessage, on pubsubTopic: PubsubTopic, avoiding usedPlaces: Set<Int>, until deadline: Duration
    ) async -> PlacedPublication? {
        var failures = 0
        while true {
            do throws(RelayError) {
                return try await relay.publish(message, on: pubsubTopic, avoiding: usedPlaces)
            } catch {
                failures += 1
                let pause = Self.backoff.delay(afterFailures: failures, jitter: .random(in: 0...1))
                guard error.code == .unavailable, uptime + pause < deadline else {
                    logger.warning("failed to publish answer", metadata: ["reason": "\(error.message)"])
                    return nil
                }
                guard (try? await Task.sleep(for: pause)) != nil else { return nil }
            }
        }
    }

    // MARK: Confirming

    private func lookUpLater(_ sent: Confirmations.Sent) {
        let now = uptime
        let (isKept, wasIdle) = confirmations.withLock { confirmations in
            let wasIdle = confirmations.isIdle
            return (confirmations.add(sent, at: now), wasIdle)
        }
        if !isKept { counters.add(.answerUnchecked) }
        if isKept, wasIdle { wakeUp.signal() }
    }

    /// Does one look-up at a time, to limit the load on the store.
    private func confirm() async {
        var signals = wakeUp.makeAsyncIterator()
        while !Task.isCancelled {
            let now = uptime
            switch confirmations.withLock({ $0.next(at: now) }) {
            case .idle:
                guard await signals.next() != nil else { return }
            case .wait(let until):
                try? await Task.sleep(for: until - now)
            case .lookUp(let batch):
                let finding = await find(batch.hashes)
                let now = uptime
                let outcome = confirmations.withLock { $0.finish(batch, finding, at: now) }
                counters.add(.answerConfirmed, outcome.confirmedCount)
                counters.add(.answerUnconfirmed, outcome.givenUpCount)
                relay.note(isClockWrong() ? outcome.verdicts.filter(\.isConfirmed) : outcome.verdicts)
                for sent in outcome.toRepublish { publishAgain(sent) }
            }
        }
    }

    private func find(_ hashes: [MessageHash]) async -> Confirmations.Finding {
        do throws(RelayError) {
            return .found(try await relay.findings(hashes))
        } catch {
            logger.debug("failed to look up published answers", metadata: ["reason": "\(error.message)"])
            return error.code == .refused ? .impossible : .failed
        }
    }

    /// Publishes the answer as a new message: peers drop a message whose hash they have seen.
    private func publishAgain(_ sent: Confirmations.Sent) {
        let now = uptime
        let item = Item(answer: sent.answer, publications: sent.publications, addedAt: now, publishedAt: sent.publishedAt)
        counters.add(.answerUnconfirmed, queue.put(item, at: now))
    }
}
