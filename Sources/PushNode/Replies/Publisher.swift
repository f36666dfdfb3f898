import Logging
import NodeMetrics
import Synchronization
import Waku

/// Seals answers on all cores and publishes them, several at once; tries again for a while when the relay can't, and sees that they arrive,
/// as far as the relay tells: ``Confirmations`` decides on that.
final class Publisher: ReplyPublishing {
    /// An answer to publish, for the first time or again.
    struct Item: Sendable {
        let answer: Reply
        /// The messages of earlier publications that nothing confirmed.
        var publications: [[Confirmations.Message]] = []
        /// When it was first published; nil when it was not yet.
        var publishedAt: Duration?
        /// Since when it waits until it is due; nil when it need not.
        var heldSince: Duration?
        /// How long it waited until it was due, although it was known.
        var heldFor = Duration.zero
    }

    /// Answers that wait, and their bytes: more are lost, since nobody would wait for them.
    static let capacity = 10_000
    private static let byteCapacity = 64 << 20
    private static let concurrency = 32
    private static let publicationTimeout = Duration.seconds(10)
    /// Answers that are sealed before others have their turn.
    private static let turn = 8

    private let relay: any Relay
    private let seen: SeenMessages
    private let handled: HandledMessages
    private let counters: Counters
    private let logger: Logger
    private let queue: AnswerQueue
    private let replyDelay: Duration
    private let confirmations: Mutex<Confirmations>
    /// There is something to look up, after there was nothing.
    private let additions: AsyncStream<Void>
    private let addition: AsyncStream<Void>.Continuation
    private let start = ContinuousClock.now

    /// - Parameters:
    ///   - seen: gets the hash of each message before it is published: it is no news when it comes back.
    ///   - handled: is told which messages were answered.
    ///   - replyDelay: see ``NodeConfiguration/replyDelay``.
    init(
        relay: any Relay, seen: SeenMessages, handled: HandledMessages, counters: Counters, logger: Logger,
        replyDelay: Duration = .zero,
        confirmation: Confirmations.Configuration = Confirmations.Configuration()
    ) {
        self.relay = relay
        self.counters = counters
        self.logger = logger
        self.seen = seen
        self.handled = handled
        self.replyDelay = replyDelay
        queue = AnswerQueue(AnswerBuffer(capacity: Self.capacity, byteCapacity: Self.byteCapacity, horizon: replyDelay))
        confirmations = Mutex(Confirmations(configuration: confirmation))
        (additions, addition) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Publishes an answer as soon as it is due: see ``NodeConfiguration/replyDelay``.
    package func publish(_ answer: Reply) {
        counters.add(.answerLost, queue.put(Item(answer: answer), due: due(answer), at: uptime))
    }

    /// A registrant listens to the topic of its identity already; whoever asks has made a key for the answer and must subscribe to its topic.
    private func due(_ answer: Reply) -> Duration? {
        guard answer.isHeld, replyDelay > .zero else { return nil }
        return answer.times.map { start.duration(to: $0.received) + replyDelay }
    }

    /// Answers that are to be published.
    var waitingCount: Int { queue.count }
    /// Answers that are to be looked up.
    var unconfirmedCount: Int { confirmations.withLock { $0.count } }
    var confirmationLimit: Int { confirmations.withLock { $0.limit } }

    /// No answer will follow: ``run()`` ends when the last was published. What is not confirmed by then stays so.
    func finish() {
        queue.finish()
    }

    func run() async {
        // Ends with this: it is not waited for longer than a look-up takes to be cancelled.
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
            // A relay that takes a message at once never lets go of the thread.
            count += 1
            if count.isMultiple(of: Self.turn) { await Task.yield() }
        }
    }

    private var uptime: Duration { start.duration(to: .now) }

    // MARK: Publishing

    private func send(_ item: Item) async {
        let answer = item.answer
        let publishedAt = item.publishedAt ?? uptime
        let messages = answer.seal(.now())
        // What did not arrive by one relay is published by another.
        let usedPlaces = Confirmations.Sent.places(of: item.publications)
        var unconfirmed: [Confirmations.Message] = []
        var canBeLookedUp = true
        for message in messages {
            let hash = message.hash(on: answer.pubsubTopic)
            _ = seen.insert(hash)
            guard
                let placed = await publish(
                    message, on: answer.pubsubTopic, avoiding: usedPlaces, until: publishedAt + Self.publicationTimeout)
            else {
                counters.add(item.publishedAt == nil ? .answerLost : .answerUnconfirmed)
                return
            }
            switch placed.publication {
            case .confirmed where placed.canBeChecked:
                unconfirmed.append(Confirmations.Message(hash: hash, places: placed.places, isVouchedFor: true))
            case .confirmed: break
            case .unconfirmed(let canBe):
                unconfirmed.append(Confirmations.Message(hash: hash, places: placed.places))
                canBeLookedUp = canBeLookedUp && (canBe || placed.canBeChecked)
            }
        }
        if let question = answer.question { handled.note(question) }
        if item.publishedAt == nil {
            counters.reached(.answered, answer.kind, answer.times, without: item.heldFor)
            if item.heldSince != nil { counters.held(answer.kind, for: item.heldFor, answer.times) }
        }
        counters.add(item.publishedAt == nil ? .answerPublished : .answerRepeated)
        if unconfirmed.isEmpty {
            counters.add(.answerConfirmed)
        } else if canBeLookedUp {
            lookUpLater(
                Confirmations.Sent(answer: answer, publications: item.publications + [unconfirmed], publishedAt: publishedAt))
        } else {
            counters.add(.answerUnconfirmed)
        }
    }

    /// nil when it could not be published.
    private func publish(
        _ message: WakuMessage, on pubsubTopic: PubsubTopic, avoiding usedPlaces: Set<Int>, until deadline: Duration
    ) async -> PlacedPublication? {
        var pause = Duration.milliseconds(100)
        while true {
            do throws(RelayError) {
                return try await relay.publish(message, on: pubsubTopic, avoiding: usedPlaces)
            } catch {
                guard error.code == .unavailable, uptime + pause < deadline else {
                    logger.warning("answer not published", metadata: ["reason": "\(error.message)"])
                    return nil
                }
                guard (try? await Task.sleep(for: pause)) != nil else { return nil }
                pause = min(pause * 2, .seconds(2))
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
        if isKept, wasIdle { addition.yield() }
    }

    /// One look-up at a time: a store has other things to do.
    private func confirm() async {
        var additions = additions.makeAsyncIterator()
        while !Task.isCancelled {
            let now = uptime
            switch confirmations.withLock({ $0.next(at: now) }) {
            case .idle:
                guard await additions.next() != nil else { return }
            case .wait(let until):
                try? await Task.sleep(for: until - now)
            case .lookUp(let batch):
                let finding = await find(batch.hashes)
                let now = uptime
                let outcome = confirmations.withLock { $0.finish(batch, finding, at: now) }
                counters.add(.answerConfirmed, outcome.confirmedCount)
                counters.add(.answerUnconfirmed, outcome.givenUpCount)
                relay.note(outcome.verdicts)
                for sent in outcome.toRepeat { publishAgain(sent) }
            }
        }
    }

    private func find(_ hashes: [MessageHash]) async -> Confirmations.Finding {
        do throws(RelayError) {
            return .found(try await relay.findings(hashes))
        } catch {
            logger.debug("answers not looked up", metadata: ["reason": "\(error.message)"])
            return error.code == .refused ? .impossible : .failed
        }
    }

    /// Sealed anew, it is another message: one that the network dropped for its hash would be dropped again.
    private func publishAgain(_ sent: Confirmations.Sent) {
        let item = Item(answer: sent.answer, publications: sent.publications, publishedAt: sent.publishedAt)
        counters.add(.answerUnconfirmed, queue.put(item, at: uptime))
    }
}
