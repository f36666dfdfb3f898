import Core
import StatusProtocol
import Synchronization
public import Waku
public import WakuCrypto

/// One-shot requests with a caller waiting for the answer.
struct WaitingAsks: Sendable {
    struct Ask: Sendable {
        let recipient: PrivateKey
        /// The topic of the answer.
        let topic: TopicTag?
        let server: PublicKey
        /// Whether an envelope is the expected answer.
        let match: @Sendable (MetadataEnvelope) -> Bool
        let answers: AsyncStream<[UInt8]>.Continuation
    }
    var asks: [Int: Ask] = [:]
    var nextID = 0
}

extension StatusPushClient {
    /// The topic for answers encrypted to a key.
    public static func answerTopic(_ key: PublicKey) -> ContentTopic {
        ContentTopic(TopicTag(of: StatusTopics.partitioned(key)))
    }

    // MARK: Asking

    /// Publishes an envelope, and waits for the answer to `sender` that satisfies `match`.
    ///
    /// - Throws: ``PushClientError``
    func ask(
        _ envelope: [UInt8], to recipient: Recipient, sender: PrivateKey, wakuSigner: PrivateKey, server: PublicKey, timeout: Duration,
        match: @escaping @Sendable (MetadataEnvelope) -> Bool
    ) async throws(PushClientError) -> [UInt8] {
        let messages = EnvelopeSealing.seal(envelope, to: recipient, wakuSigner: wakuSigner, at: .now())
        let topic = Self.answerTopic(sender.publicKey)
        network.watching.retain(topic)
        defer { network.watching.release([topic]) }
        let (answers, feed) = AsyncStream.makeStream(of: [UInt8].self, bufferingPolicy: .bufferingOldest(1))
        let ask = WaitingAsks.Ask(recipient: sender, topic: topic.tag, server: server, match: match, answers: feed)
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
            group.addTask { [network] in
                do throws(RelayError) {
                    if let relay = network.relay as? any ConfirmingRelay { try await relay.confirmWatching([topic]) }
                    for message in messages { try await network.relay.publish(message, on: network.pubsubTopic) }
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

    /// Only the keys of the message's topic are tried: trying each key on each message would be too slow for a client with many requests.
    func takeForAsks(_ message: WakuMessage) {
        let topic = message.contentTopic.tag
        let asks = waiting.withLock { waiting in waiting.asks.values.filter { $0.topic == topic } }
        for ask in asks {
            guard let envelope = envelope(in: message, for: ask.recipient), envelope.sender == ask.server, ask.match(envelope) else {
                continue
            }
            ask.answers.yield(envelope.payload)
        }
    }

    /// The envelope encrypted to one of the client's keys, if the same server signed both layers.
    func envelope(in message: WakuMessage, for recipient: PrivateKey) -> MetadataEnvelope? {
        guard let opened = network.envelope(in: message, for: recipient),
            let envelope = try? MetadataEnvelope(parsing: opened.bytes, wakuSigner: opened.signer), envelope.sender == opened.signer
        else { return nil }
        return envelope
    }
}
