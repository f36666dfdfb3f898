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
        let outcome: AsyncStream<Result<[UInt8], PushClientError>>.Continuation
        var isPublished = false
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
    /// - Parameter timeout: how long the whole takes at most, publishing included.
    func ask(
        _ envelope: [UInt8], to recipient: Recipient, sender: PrivateKey, wakuSigner: PrivateKey, server: PublicKey, timeout: Duration,
        match: @escaping @Sendable (MetadataEnvelope) -> Bool
    ) async throws(PushClientError) -> [UInt8] {
        try await runner.waitUntilRunning()
        let messages = EnvelopeSealing.seal(envelope, to: recipient, wakuSigner: wakuSigner, at: .now())
        let topic = Self.answerTopic(sender.publicKey)
        network.watching.retain(topic)
        defer { network.watching.release([topic]) }
        // The first outcome counts.
        let (outcomes, outcome) = AsyncStream.makeStream(
            of: Result<[UInt8], PushClientError>.self, bufferingPolicy: .bufferingOldest(1))
        let ask = WaitingAsks.Ask(recipient: sender, topic: topic.tag, server: server, match: match, outcome: outcome)
        let id = waiting.withLock { waiting in
            defer { waiting.nextID += 1 }
            waiting.asks[waiting.nextID] = ask
            return waiting.nextID
        }
        defer { _ = waiting.withLock { $0.asks.removeValue(forKey: id) } }

        // In tasks of their own: a connection attempt that does not notice its cancellation must not delay the outcome.
        let publishing = Task { [self] in
            do throws(RelayError) {
                if let relay = network.relay as? any ConfirmingRelay { try await relay.confirmWatching([topic]) }
                for message in messages { try await network.relay.publish(message, on: network.pubsubTopic) }
                waiting.withLock { $0.asks[id]?.isPublished = true }
            } catch {
                outcome.yield(.failure(PushClientError(code: .notPublished, message: error.message)))
            }
        }
        let deadline = Task { [self] in
            guard (try? await Task.sleep(for: timeout)) != nil else { return }
            let isPublished = waiting.withLock { $0.asks[id]?.isPublished ?? false }
            outcome.yield(.failure(isPublished ? .noAnswer(within: timeout) : .notPublished(within: timeout)))
        }
        defer {
            publishing.cancel()
            deadline.cancel()
        }
        for await outcome in outcomes { return try outcome.get() }
        throw .cancelled
    }

    /// Only the keys of the message's topic are tried: trying each key on each message would be too slow for a client with many requests.
    func takeForAsks(_ message: WakuMessage) {
        let topic = message.contentTopic.tag
        let asks = waiting.withLock { waiting in waiting.asks.values.filter { $0.topic == topic } }
        for ask in asks {
            guard let envelope = envelope(in: message, for: ask.recipient), envelope.sender == ask.server, ask.match(envelope) else {
                continue
            }
            ask.outcome.yield(.success(envelope.payload))
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
