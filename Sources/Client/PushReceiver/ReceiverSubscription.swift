public import Core
import Foundation
public import WakuCrypto

/// A Web Push subscription with the private half of its keys, for its receiver. Prints as `<redacted>`.
///
/// The last component of the endpoint's path is random, so that only those that were given the subscription can post to it.
public struct ReceiverSubscription: Sendable, Redacted {
    /// The maximum length of the stored form in bytes.
    public static let jsonByteLimit = 4096
    private static let tokenByteCount = 24

    /// The public half, to be registered with push servers.
    public let subscription: PushSubscription
    let key: P256PrivateKey

    /// Makes a subscription with new keys.
    ///
    /// - Parameters:
    ///   - base: the https URL under which the receiver can be reached.
    ///   - vapidKey: the key of the only server that may post; nil: every server may.
    /// - Returns: nil for a base that is not valid: see `WebPushOrigin`.
    public init?(base: String, vapidKey: P256PublicKey?) {
        guard !base.contains("?"), WebPushOrigin(endpoint: base) != nil else { return nil }
        let token = Base64URL.encode(randomBytes(Self.tokenByteCount))
        self.init(
            endpoint: base + (base.hasSuffix("/") ? "" : "/") + token, key: .generate(), secret: randomBytes(WebPushKeys.secretByteCount),
            vapidKey: vapidKey)
    }

    private init?(endpoint: String, key: P256PrivateKey, secret: [UInt8], vapidKey: P256PublicKey?) {
        guard let keys = WebPushKeys(publicKey: key.publicKey, secret: secret),
            let subscription = PushSubscription(endpoint: endpoint, keys: keys, vapidKey: vapidKey)
        else { return nil }
        self.subscription = subscription
        self.key = key
    }

    /// The key of the only server that may post; nil when every server may.
    public var vapidKey: P256PublicKey? { subscription.vapidKey }

    /// The last component of the endpoint's path.
    public var token: String { Self.token(of: subscription.endpoint) }

    /// The last component of a path.
    static func token(of path: String) -> String {
        String(path.split(separator: "/", omittingEmptySubsequences: false).last ?? "")
    }

    /// Decrypts the body of a push message.
    ///
    /// - Throws: see `WebPushEncryption.open`.
    public func open(_ body: [UInt8]) throws(CryptoError) -> [UInt8] {
        try WebPushEncryption.open(body, key: key, secret: subscription.keys.secret)
    }

    // MARK: Stored form

    private struct Stored: Codable {
        let endpoint: String
        let key: String
        let auth: String
        let vapid: String?
    }

    /// Parses ``json``; nil for anything else.
    public init?(json: [UInt8]) {
        guard json.count <= Self.jsonByteLimit, let stored = try? JSONDecoder().decode(Stored.self, from: Data(json)),
            let key = Base64URL.decode(stored.key).flatMap({ P256PrivateKey(bytes: $0) }), let secret = Base64URL.decode(stored.auth)
        else { return nil }
        let vapidKey = stored.vapid.flatMap { Base64URL.decode($0) }.flatMap { try? P256PublicKey(parsing: $0) }
        guard (vapidKey == nil) == (stored.vapid == nil) else { return nil }
        self.init(endpoint: stored.endpoint, key: key, secret: secret, vapidKey: vapidKey)
    }

    /// The stored form. It has the private key: write it only to a file that no other user can read.
    public var json: [UInt8] {
        let stored = Stored(
            endpoint: subscription.endpoint, key: key.scalar.withBytes { Base64URL.encode(Array($0)) },
            auth: Base64URL.encode(subscription.keys.secret), vapid: vapidKey.map { Base64URL.encode($0.bytes) })
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(stored) else { preconditionFailure("texts can be encoded") }
        return Array(data)
    }
}
