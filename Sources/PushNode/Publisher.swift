import Logging
import StatusProtocol
import Synchronization
import Waku
import WakuCrypto

/// Seals answers on all cores and publishes them, several at once; tries again for a while when the relay can't.
final class Publisher: Sendable {
    /// Answers that wait, and their bytes: more are lost, since nobody would wait for them.
    private static let capacity = 10_000
    private static let byteCapacity = 64 << 20
    private static let concurrency = 32
    private static let patience = Duration.seconds(10)

    private let identity: PrivateKey
    private let relay: any Relay
    private let seen: SeenMessages
    private let counters: Counters
    private let logger: Logger
    private let answers: AsyncStream<Answer>
    private let feed: AsyncStream<Answer>.Continuation
    private let waitingBytes = Mutex(0)

    /// - Parameter seen: gets the hash of each message before it is published: it is no news when it comes back.
    init(identity: PrivateKey, relay: any Relay, seen: SeenMessages, counters: Counters, logger: Logger) {
        self.identity = identity
        self.relay = relay
        self.counters = counters
        self.logger = logger
        self.seen = seen
        (answers, feed) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.capacity))
    }

    func publish(_ answer: Answer) {
        let count = answer.payload.count
        let hasRoom = waitingBytes.withLock { bytes in
            guard bytes + count <= Self.byteCapacity else { return false }
            bytes += count
            return true
        }
        if hasRoom {
            if case .enqueued = feed.yield(answer) { return }
            waitingBytes.withLock { $0 -= count }
        }
        counters.add(.answerLost)
    }

    /// No answer will follow: ``run()`` ends when the last was published.
    func finish() {
        feed.finish()
    }

    func run() async {
        await withDiscardingTaskGroup { group in
            let room = AsyncSlots(Self.concurrency)
            for await answer in answers {
                await room.take()
                group.addTask {
                    await self.send(answer)
                    self.waitingBytes.withLock { $0 -= answer.payload.count }
                    room.give()
                }
            }
        }
    }

    private func send(_ answer: Answer) async {
        let envelope = MetadataEnvelope.encode(answer.kind, payload: answer.payload, signedBy: identity)
        let messages = EnvelopeSealing.seal(envelope.bytes, to: .partitioned(answer.recipient), wakuSigner: identity, at: .now())
        for message in messages {
            _ = seen.insert(message.hash(on: answer.pubsubTopic))
            guard await publish(message, on: answer.pubsubTopic) else {
                counters.add(.answerLost)
                return
            }
        }
        counters.add(.answerPublished)
    }

    private func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async -> Bool {
        let deadline = ContinuousClock.now + Self.patience
        var pause = Duration.milliseconds(100)
        while true {
            do throws(RelayError) {
                try await relay.publish(message, on: pubsubTopic)
                return true
            } catch {
                guard error.code == .unavailable, ContinuousClock.now + pause < deadline else {
                    logger.warning("answer not published", metadata: ["reason": "\(error.message)"])
                    return false
                }
                guard (try? await Task.sleep(for: pause)) != nil else { return false }
                pause = min(pause * 2, .seconds(2))
            }
        }
    }
}
