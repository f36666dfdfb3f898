import StatusProtocol
import Synchronization
public import Waku
public import WakuCrypto

/// A client of push servers: registers a device, asks about others', has them notified.
///
/// It believes no answer that is not signed by the server it asked, and no grant that the registrant did not sign.
public final class PushClient: Sendable {
    let identity: PrivateKey
    let relay: any Relay
    let pubsubTopic: PubsubTopic
    private let waiting = Mutex(Waiting())

    /// Answers that somebody waits for.
    private struct Waiting {
        struct Ask {
            let recipient: PrivateKey
            /// Where its answer comes in.
            let topic: TopicTag?
            let server: PublicKey
            /// Whether this is what was asked for.
            let match: @Sendable (MetadataEnvelope) -> Bool
            let answers: AsyncStream<[UInt8]>.Continuation
        }
        var asks: [Int: Ask] = [:]
        var nextID = 0
        var assembler = SegmentAssembler(limits: .answers)
    }

    /// `identity` is who registers, and to whose key lists of allowed keys are sealed. Queries and requests do not show it.
    public init(identity: PrivateKey, relay: any Relay, pubsubTopic: PubsubTopic = .statusDefault) {
        self.identity = identity
        self.relay = relay
        self.pubsubTopic = pubsubTopic
    }

    /// Where answers to a key come in.
    public static func answerTopic(_ key: PublicKey) -> ContentTopic {
        ContentTopic(TopicTag(of: StatusTopics.partitioned(key)))
    }

    /// Stays attached until cancelled. While it does not run, no answer comes.
    public func run() async {
        await relay.run { [self] batch in
            for received in batch { take(received.message) }
        }
    }

    // MARK: Asking

    /// Publishes an envelope, and waits for the answer to `sender` that `match` recognizes.
    ///
    /// - Throws: ``PushClientError``
    func ask(
        _ envelope: [UInt8], to recipient: Recipient, sender: PrivateKey, wakuSigner: PrivateKey, server: PublicKey, timeout: Duration,
        match: @escaping @Sendable (MetadataEnvelope) -> Bool
    ) async throws(PushClientError) -> [UInt8] {
        let messages = EnvelopeSealing.seal(envelope, to: recipient, wakuSigner: wakuSigner, at: .now())
        let topic = Self.answerTopic(sender.publicKey)
        relay.watch([topic])
        let (answers, feed) = AsyncStream.makeStream(of: [UInt8].self, bufferingPolicy: .bufferingOldest(1))
        let ask = Waiting.Ask(recipient: sender, topic: topic.tag, server: server, match: match, answers: feed)
        let id = waiting.withLock { waiting in
            defer { waiting.nextID += 1 }
            waiting.asks[waiting.nextID] = ask
            return waiting.nextID
        }
        defer { _ = waiting.withLock { $0.asks.removeValue(forKey: id) } }

        let outcome = await withTaskGroup(of: Result<[UInt8], PushClientError>.self) { group in
            let noAnswer = PushClientError(code: .noAnswer, message: "the server did not answer within \(timeout.formatted)")
            group.addTask {
                for await answer in answers { return .success(answer) }
                return .failure(noAnswer)
            }
            group.addTask { [relay, pubsubTopic] in
                do throws(RelayError) {
                    for message in messages { try await relay.publish(message, on: pubsubTopic) }
                } catch {
                    return .failure(PushClientError(code: .notPublished, message: error.message))
                }
                try? await Task.sleep(for: timeout)
                return .failure(noAnswer)
            }
            defer { group.cancelAll() }
            return await group.next() ?? .failure(noAnswer)
        }
        return try outcome.get()
    }

    private func take(_ message: WakuMessage) {
        // To try each message with each key would cost a client with many questions all its time.
        let topic = message.contentTopic.tag
        let asks = waiting.withLock { waiting in waiting.asks.values.filter { $0.topic == topic } }
        for ask in asks {
            guard let payload = try? EnvelopeSealing.open(message, identity: ask.recipient), payload.signer == ask.server,
                let bytes = whole(of: payload),
                let envelope = try? MetadataEnvelope(parsing: bytes, wakuSigner: payload.signer), envelope.sender == ask.server,
                ask.match(envelope)
            else { continue }
            ask.answers.yield(envelope.payload)
        }
    }

    private func whole(of payload: OpenedPayload) -> [UInt8]? {
        guard let segment = payload.segment else { return payload.data }
        return waiting.withLock { $0.assembler.add(segment, from: payload.signer, at: .now()) }
    }
}

/// Why a client did not get what it asked for.
public struct PushClientError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        case notPublished
        case noAnswer
        /// The answer is not what the protocol allows.
        case badAnswer
    }

    public let code: Code
    public let message: String
    public var description: String { message }
}

extension Duration {
    /// `3 s`, `300 ms`.
    var formatted: String {
        let milliseconds = nanoseconds / 1_000_000
        return milliseconds.isMultiple(of: 1000) ? "\(milliseconds / 1000) s" : "\(milliseconds) ms"
    }
}
