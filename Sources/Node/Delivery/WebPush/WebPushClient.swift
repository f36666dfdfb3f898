package import Core
package import CurlClient
import Synchronization
package import WakuCrypto

/// Encrypts messages and posts them to push services, RFC 8030.
///
/// With several VAPID keys, a message is signed by the one that its subscription names. For others the keys are tried in order when a push service
/// refuses one, and the key that was accepted is remembered. A message that is too large for a push service (413) is posted once more without its data.
package final class WebPushClient: Sendable {
    package static let standardTimeout = Duration.seconds(15)
    private static let connectTimeout = Duration.seconds(5)
    /// Push services answer with a few bytes; the rest of a longer body is not read.
    package static let maximumReplyByteCount = 16 << 10
    private static let tokenLifetime: Int64 = 12 * 3600
    /// A token is replaced this long before its end.
    private static let tokenMargin: Int64 = 3600
    private static let tokenCapacity = 1000
    private static let rememberedKeyCapacity = 10_000
    /// RFC 8030 allows 32 characters.
    private static let topicByteCount = 24
    private static let tooLargeStatus = 413

    private struct Token {
        let header: String
        let expires: Int64
    }

    private let client: CurlClient
    /// The current one first.
    private let keys: [VAPIDKey]
    /// Derived from the current VAPID key, so that all nodes have the same.
    private let topicKey: SymmetricKey
    private let contact: String
    private let timeout: Duration
    private let now: @Sendable () -> Timestamp
    /// For each of ``keys``.
    private let tokens: Mutex<[GenerationalCache<WebPushOrigin, Token>]>
    /// The places in ``keys`` that were accepted for subscriptions that name none, by a hash of the endpoint; only those that are not the first.
    private let accepted = Mutex(GenerationalCache<Int, Int>(capacity: rememberedKeyCapacity))

    /// - Parameters:
    ///   - client: see ``configuration(trust:allowed:)``.
    ///   - formerKeys: former VAPID keys of the node that subscriptions may still be bound to.
    ///   - contact: the operator's address: see `VAPIDKey.isContact(_:)`.
    ///   - timeout: the time limit for the answer, of all attempts together.
    package init(
        client: CurlClient, key: VAPIDKey, formerKeys: [VAPIDKey] = [], contact: String, timeout: Duration = WebPushClient.standardTimeout,
        now: @escaping @Sendable () -> Timestamp = { .now() }
    ) {
        self.client = client
        keys = [key] + formerKeys
        tokens = Mutex(keys.map { _ in GenerationalCache(capacity: Self.tokenCapacity) })
        topicKey = HMACSHA256.derivedKey(label: Array("waku-push Web Push topic".utf8), of: key.key.scalar)
        self.contact = contact
        self.timeout = timeout
        self.now = now
    }

    /// The configuration of a client for URLs that strangers choose: https only, only to public addresses, without a proxy.
    ///
    /// - Parameter allowed: networks that may be connected to although they are not public.
    package static func configuration(trust: CurlConfiguration.Trust, allowed: [AddressRange]) -> CurlConfiguration {
        var configuration = CurlConfiguration(trust: trust, maximumConnectionsPerHost: 8)
        configuration.destinations = .publicAddresses(and: allowed)
        return configuration
    }

    /// The VAPID keys that it signs with, the current one first, then those that subscriptions may still be bound to. At least one.
    package var publicKeys: [P256PublicKey] { keys.map(\.key.publicKey) }

    /// - Parameter hasAnswered: whether the push service accepted a message before.
    package func post(_ message: WebPushMessage, hasAnswered: Bool = false) async -> WebPushReply {
        let deadline = ContinuousClock.now + timeout
        let endpointHash = message.subscription.endpoint.hashValue
        if let named = message.subscription.vapidKey, let place = keys.firstIndex(where: { $0.key.publicKey == named }) {
            return await post(message, signedBy: place, until: deadline, hasAnswered: hasAnswered)
        }
        let first = accepted.withLock { $0.value(of: endpointHash) } ?? 0
        var reply = await post(message, signedBy: first, until: deadline, hasAnswered: hasAnswered)
        for place in keys.indices where reply.answer == .keyRefused && place != first && .now < deadline {
            let postCount = reply.postCount
            reply = await post(message, signedBy: place, until: deadline, hasAnswered: hasAnswered)
            reply.postCount += postCount
            if reply.answer == .accepted { accepted.withLock { $0.set(place, of: endpointHash) } }
        }
        return reply
    }

    private func post(
        _ message: WebPushMessage, signedBy place: Int, until deadline: ContinuousClock.Instant, hasAnswered: Bool
    ) async -> WebPushReply {
        let content = message.content
        let keys = message.subscription.keys
        guard let body = WebPushEncryption.seal(content.whole, to: keys) ?? WebPushEncryption.seal(content.truncated, to: keys) else {
            return WebPushReply(.tooLong, reason: "the message is too long")
        }
        let reply = await post(body, of: message, signedBy: place, until: deadline, hasAnswered: hasAnswered)
        // Mozilla's service answers 413 to bodies over some 3,015 bytes for devices that it reaches through Firebase or APNs.
        guard reply.status == Self.tooLargeStatus, let smaller = WebPushEncryption.seal(content.truncated, to: keys),
            smaller.count < body.count
        else { return reply }
        var second = await post(smaller, of: message, signedBy: place, until: deadline, hasAnswered: hasAnswered)
        second.postCount += reply.postCount
        return second
    }

    private func post(
        _ body: [UInt8], of message: WebPushMessage, signedBy place: Int, until deadline: ContinuousClock.Instant, hasAnswered: Bool
    ) async -> WebPushReply {
        let time = now()
        let left = message.expires.since(time).components.seconds
        var headers = [
            ("TTL", "\(max(0, left))"), ("Urgency", message.content.urgency.rawValue), ("Content-Encoding", "aes128gcm"),
            ("Content-Type", "application/octet-stream"),
            ("Authorization", authorization(for: message.subscription.origin, by: place, at: time.rawValue / 1_000_000_000)),
        ]
        if let topic = topic(of: message) { headers.append(("Topic", topic)) }
        var request = HTTPRequest(
            method: "POST", url: message.subscription.endpoint, headers: headers, body: body, connectTimeout: Self.connectTimeout,
            timeout: max(.milliseconds(1), ContinuousClock.now.duration(to: deadline)),
            maximumResponseByteCount: Self.maximumReplyByteCount, cutsLongResponses: true)
        request.hasAnswered = hasAnswered
        do throws(HTTPError) {
            let response = try await client.send(request)
            let answer = WebPushAnswer(status: response.status, retryAfter: response.header("Retry-After"), now: now())
            return WebPushReply(answer, status: response.status, reason: "status \(response.status)", address: response.address)
        } catch {
            let answer: WebPushAnswer =
                switch error.code {
                case .tooLarge: .refused
                case .busyAddress: .addressBusy
                default: .unanswered
                }
            // libcurl's texts may name the host.
            return WebPushReply(answer, reason: Self.reason(error.code))
        }
    }

    /// Differs between subscriptions, so that a push service can't tell by it which devices were notified of the same.
    private func topic(of message: WebPushMessage) -> String? {
        message.collapseKey.map { key in
            let code = topicKey.authenticationCode(of: Array(message.subscription.endpoint.utf8) + [0] + key)
            return Base64URL.encode(code.prefix(Self.topicByteCount))
        }
    }

    /// - Parameter place: of the key in ``keys``.
    private func authorization(for origin: WebPushOrigin, by place: Int, at seconds: Int64) -> String {
        if let token = tokens.withLock({ $0[place].value(of: origin) }), seconds < token.expires - Self.tokenMargin,
            token.expires - seconds <= Self.tokenLifetime
        {
            return token.header
        }
        let expires = seconds + Self.tokenLifetime
        let key = keys[place]
        let header = key.authorization(key.token(for: origin, contact: contact, expires: expires))
        tokens.withLock { $0[place].set(Token(header: header, expires: expires), of: origin) }
        return header
    }

    private static func reason(_ code: HTTPError.Code) -> String {
        switch code {
        case .resolve: "its name could not be resolved"
        case .connect: "no connection"
        case .refusedAddress: "it is not at a public address"
        case .busyAddress: "too many new connections to its address"
        case .timeout: "timed out"
        case .tls: "no trusted connection"
        case .tooLarge: "the reply is too large"
        case .interrupted: "the connection broke"
        case .cancelled: "cancelled"
        case .badURL, .other: "the post failed"
        }
    }
}
