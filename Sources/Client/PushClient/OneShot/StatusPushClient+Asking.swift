import Core
import StatusProtocol
public import Waku
public import WakuCrypto

/// A one-shot request with a caller waiting for the answer.
struct Ask: Sendable {
    let recipient: PrivateKey
    let take: @Sendable (MetadataEnvelope) -> Void
}

extension StatusPushClient {
    /// The topic for answers encrypted to a key.
    public static func answerTopic(_ key: PublicKey) -> ContentTopic {
        ContentTopic(TopicTag(of: StatusTopics.partitioned(key)))
    }

    private enum AskEvent<Answer: Sendable>: Sendable {
        case published
        /// - Parameter isLast: whether it was the last try.
        case notPublished(RelayError, isLast: Bool)
        case answer(Answer)
        case timeout
    }

    private static let publishingTries = 3
    private static let publishingBackoff = ExponentialBackoff(initial: .milliseconds(250), maximum: .seconds(2))

    /// Publishes an envelope, up to three times while the relay is unavailable, and waits for the answer to `sender`.
    ///
    /// - Parameters:
    ///   - timeout: how long the whole takes at most, publishing included.
    ///   - read: Reads an envelope of the server; nil when it is not the expected answer.
    func ask<Answer: Sendable>(
        _ envelope: [UInt8], to recipient: Recipient, sender: PrivateKey, server: PublicKey, timeout: Duration,
        read: @escaping @Sendable (MetadataEnvelope) -> Answer?
    ) async throws(PushClientError) -> Answer {
        try await runner.waitUntilRunning()
        let messages = EnvelopeSealing.seal(envelope, to: recipient, wakuSigner: sender, at: .now())
        let topic = Self.answerTopic(sender.publicKey)
        let (events, continuation) = AsyncStream.makeStream(of: AskEvent<Answer>.self)
        let ask = Ask(recipient: sender) { envelope in
            if envelope.sender == server, let answer = read(envelope) { continuation.yield(.answer(answer)) }
        }
        let id = routes.add(.ask(ask), on: topic, isBounded: false)
        defer { routes.end(id) }

        // In tasks of their own: a connection attempt that does not notice its cancellation must not delay the outcome.
        let publishing = Task { [network] in
            var rest = messages[...]
            var failures = 0
            while !Task.isCancelled {
                do throws(RelayError) {
                    if let relay = network.relay as? any ConfirmingRelay { try await relay.confirmWatching([topic]) }
                    while let message = rest.first {
                        try await network.relay.publish(message, on: network.pubsubTopic)
                        rest.removeFirst()
                    }
                    continuation.yield(.published)
                    return
                } catch {
                    failures += 1
                    let isLast = error.code != .unavailable || failures == Self.publishingTries
                    continuation.yield(.notPublished(error, isLast: isLast))
                    guard !isLast else { return }
                    try? await Task.sleep(for: Self.publishingBackoff.delay(afterFailures: failures, jitter: .random(in: 0...1)))
                }
            }
        }
        let deadline = Task {
            if (try? await Task.sleep(for: timeout.forSleeping)) != nil { continuation.yield(.timeout) }
        }
        defer {
            publishing.cancel()
            deadline.cancel()
        }
        var isPublished = false
        var failure: PushClientError?
        for await event in events {
            switch event {
            case .published: isPublished = true
            case .notPublished(let error, let isLast):
                failure = PushClientError(code: .notPublished, message: error.message)
                if let failure, isLast { throw failure }
            case .answer(let answer): return answer
            case .timeout: throw isPublished ? .noAnswer(within: timeout) : failure ?? .notPublished(within: timeout)
            }
        }
        throw .cancelled
    }
}
