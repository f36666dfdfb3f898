public import Core
import WakuCrypto

/// Answers push messages for subscriptions, as a push service and as the device behind it. Requests and time come in as values.
///
///     path ──▶ rate ──▶ length ──▶ headers ──▶ VAPID signature ──▶ decryption ──▶ received or repeated
///      404, 410   429       413        400          401, 403             400
///
/// Cheap checks come first. 201 means that the message was received, now or before: a message with an `id` that was received before is a repeated one.
public struct PushInbox: Sendable {
    /// Limits of accepted requests.
    public struct Limits: Hashable, Sendable {
        /// Push services take messages of at least 4,096 bytes, RFC 8030; waku-push sends none that are longer.
        public var bodyByteCount = 4096
        /// Messages a second, after a burst. With 0, messages over the burst are refused for good.
        public var rate = 100.0
        public var burst = 1000.0
        /// The number of ids that are remembered, to recognize repeated messages.
        public var rememberedIDs = 10_000

        public init() {}
    }

    /// A request to the endpoint. Header values are nil when the request has no such header.
    public struct Request: Sendable {
        public var path: String
        public var authorization: String?
        public var contentEncoding: String?
        public var ttl: String?
        /// nil for a body that was not read because it is longer than ``Limits/bodyByteCount``.
        public var body: [UInt8]?

        public init(
            path: String, authorization: String? = nil, contentEncoding: String? = nil, ttl: String? = nil, body: [UInt8]? = nil
        ) {
            self.path = path
            self.authorization = authorization
            self.contentEncoding = contentEncoding
            self.ttl = ttl
            self.body = body
        }
    }

    /// Reasons for a refusal.
    public enum Refusal: Error, Hashable, Sendable {
        case unknownPath
        /// The subscription was removed.
        case removed
        case tooMany(retryAfterSeconds: Int)
        case tooLong
        /// A header that RFC 8030 and RFC 8291 require is missing or wrong.
        case badHeader(String)
        /// The subscription is for one server, and the request has no VAPID token.
        case unsigned
        /// The VAPID token is of another server, for another push service, expired, or its signature is wrong.
        case wrongSignature
        case notDecrypted

        /// The status of the HTTP response.
        public var status: Int {
            switch self {
            case .unknownPath: 404
            case .removed: 410
            case .tooMany: 429
            case .tooLong: 413
            case .badHeader, .notDecrypted: 400
            case .unsigned: 401
            case .wrongSignature: 403
            }
        }
    }

    /// The outcome of a request.
    public enum Outcome: Sendable {
        case received(ReceivedNotification)
        /// A message with the same id was received before.
        case repeated(ReceivedNotification)
        case refused(Refusal)
    }

    private struct Signed: Sendable {
        let authorization: String
        let token: String
        let expires: Timestamp
    }

    package let limits: Limits
    private var subscriptions: [String: ReceiverSubscription] = [:]
    private var removed: Set<String>
    private var received: GenerationalCache<String, Void>
    /// The last valid VAPID token: servers use one for many messages.
    private var signed: Signed?
    private var tokens: Double
    private var refilled: Timestamp?

    /// - Parameter removed: the ``ReceiverSubscription/token`` of each former subscription, answered 410.
    public init(_ subscriptions: [ReceiverSubscription], removed: Set<String> = [], limits: Limits = Limits()) {
        self.limits = limits
        self.removed = removed
        tokens = limits.burst
        received = GenerationalCache(capacity: limits.rememberedIDs)
        for subscription in subscriptions { add(subscription) }
    }

    /// Receives for another subscription, too.
    public mutating func add(_ subscription: ReceiverSubscription) {
        subscriptions[subscription.token] = subscription
    }

    /// Ends a subscription: from now on the answer to its messages is 410, which tells servers to forget it.
    public mutating func remove(_ subscription: ReceiverSubscription) {
        subscriptions[subscription.token] = nil
        removed.insert(subscription.token)
    }

    /// Decides about a request, and decrypts it.
    public mutating func receive(_ request: Request, at now: Timestamp) -> Outcome {
        do throws(Refusal) {
            return try accept(request, at: now)
        } catch {
            return .refused(error)
        }
    }

    private mutating func accept(_ request: Request, at now: Timestamp) throws(Refusal) -> Outcome {
        let token = ReceiverSubscription.token(of: request.path)
        guard let subscription = subscriptions[token] else { throw removed.contains(token) ? .removed : .unknownPath }
        try takeTurn(at: now)
        guard let body = request.body, body.count <= limits.bodyByteCount else { throw .tooLong }
        guard let ttl = request.ttl, UInt32(ttl) != nil else { throw .badHeader("TTL") }
        guard request.contentEncoding?.lowercased() == "aes128gcm" else { throw .badHeader("Content-Encoding") }
        if let key = subscription.vapidKey { try check(request.authorization, key, of: subscription, at: now) }
        guard let content = try? subscription.open(body) else { throw .notDecrypted }
        let notification = ReceivedNotification(content, subscription: token)
        if let id = notification.id, !received.insert(id) { return .repeated(notification) }
        return .received(notification)
    }

    /// Makes the next message with the same id a received one: call it for a notification that could not be stored, and refuse its request.
    public mutating func forget(_ notification: ReceivedNotification) {
        if let id = notification.id { received.remove(id) }
    }

    private mutating func check(
        _ authorization: String?, _ key: P256PublicKey, of subscription: ReceiverSubscription, at now: Timestamp
    ) throws(Refusal) {
        guard let authorization else { throw .unsigned }
        if let signed, signed.token == subscription.token, signed.authorization == authorization, now < signed.expires { return }
        guard let parsed = VAPIDAuthorization(parsing: authorization),
            parsed.isValid(by: key, for: subscription.subscription.origin, at: now)
        else { throw .wrongSignature }
        signed = Signed(authorization: authorization, token: subscription.token, expires: parsed.expires)
    }

    private mutating func takeTurn(at now: Timestamp) throws(Refusal) {
        if let refilled, now > refilled {
            tokens = min(limits.burst, tokens + Double(now.since(refilled).nanoseconds) / 1e9 * limits.rate)
        }
        // After a step back of the clock, it refills from the new time on.
        refilled = now
        guard tokens >= 1 else { throw .tooMany(retryAfterSeconds: max(1, Int(min(3600, (1 / limits.rate).rounded(.up))))) }
        tokens -= 1
    }
}
