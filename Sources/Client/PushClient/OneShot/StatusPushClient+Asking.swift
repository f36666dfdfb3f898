import Core
import StatusProtocol
public import Waku
public import WakuCrypto

/// A one-shot request with a caller waiting for the answer.
struct Ask: Sendable {
    enum Event: Sendable {
        case published
        case notPublished(RelayError)
        case answer([UInt8])
        case timeout
    }

    let recipient: PrivateKey
    let server: PublicKey
    /// Whether an envelope is the expected answer.
    let match: @Sendable (MetadataEnvelope) -> Bool
    let events: AsyncStream<Event>.Continuation

    func take(_ envelope: MetadataEnvelope) {
        if envelope.sender == server, match(envelope) { events.yield(.answer(envelope.payload)) }
    }
}

extension StatusPushClient {
    /// The topic for answers encrypted to a key.
    public static func answerTopic(_ key: PublicKey) -> ContentTopic {
        ContentTopic(TopicTag(of: StatusTopics.partitioned(key)))
    }

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
        let (events, continuation) = AsyncStream.makeStream(of: Ask.Event.self)
        let ask = Ask(recipient: sender, server: server, match: match, events: continuation)
        let id = routes.add(.ask(ask), on: topic, isBounded: false)
        defer { routes.end(id) }

        // In tasks of their own: a connection attempt that does not notice its cancellation must not delay the outcome.
        let publishing = Task { [network] in
            do throws(RelayError) {
                if let relay = network.relay as? any ConfirmingRelay { try await relay.confirmWatching([topic]) }
                for message in messages { try await network.relay.publish(message, on: network.pubsubTopic) }
                continuation.yield(.published)
            } catch {
                continuation.yield(.notPublished(error))
            }
        }
        let deadline = Task {
            if (try? await Task.sleep(for: timeout)) != nil { continuation.yield(.timeout) }
        }
        defer {
            publishing.cancel()
            deadline.cancel()
        }
        var isPublished = false
        for await event in events {
            switch event {
            case .published: isPublished = true
            case .notPublished(let error): throw PushClientError(code: .notPublished, message: error.message)
            case .answer(let payload): return payload
            case .timeout: throw isPublished ? .noAnswer(within: timeout) : .notPublished(within: timeout)
            }
        }
        throw .cancelled
    }
}
