import Foundation
public import WakuCrypto

/// A Web Push subscription: the URL at which a device's push service accepts messages, and the keys that they are encrypted to. As secret
/// as a device token: it prints as `<redacted>`, also inside other values.
///
///     {"endpoint": "https://…", "expirationTime": null, "keys": {"p256dh": base64url, "auth": base64url}, "vapid": base64url}
///
/// Browsers write this form (W3C Push API, `PushSubscription.toJSON`); it is also the device token of Status' token type 3. `vapid`, which browsers do
/// not write, names the server's key that the subscription was made for: push services accept messages of no other server, RFC 8292.
public struct PushSubscription: Hashable, Sendable, Redacted {
    /// The maximum length of the JSON in bytes.
    public static let jsonByteLimit = 4096
    /// The maximum length of the endpoint in bytes.
    public static let endpointByteLimit = 2048

    /// An https URL, at most 2,048 bytes.
    public let endpoint: String
    /// The origin of the endpoint: the push service.
    public let origin: WebPushOrigin
    /// The keys that messages are encrypted to.
    public let keys: WebPushKeys
    /// The VAPID key that it was made for; nil if it names none.
    public let vapidKey: P256PublicKey?

    /// nil unless each part is valid: see ``WebPushOrigin/init(endpoint:)`` and `WebPushKeys`.
    ///
    /// - Parameters:
    ///   - endpoint: an https URL.
    ///   - p256dh: an uncompressed point of P-256 in base64url, with or without padding.
    ///   - auth: 16 bytes in base64url, with or without padding.
    ///   - vapid: the VAPID key that it was made for, a point like `p256dh`.
    public init?(endpoint: String, p256dh: String, auth: String, vapid: String? = nil) {
        guard endpoint.utf8.count <= Self.endpointByteLimit, let origin = WebPushOrigin(endpoint: endpoint),
            let point = Self.decode(p256dh, byteCount: P256PublicKey.byteCount), let key = try? P256PublicKey(parsing: point),
            let secret = Self.decode(auth, byteCount: WebPushKeys.secretByteCount),
            let keys = WebPushKeys(publicKey: key, secret: secret)
        else { return nil }
        let vapidKey = vapid.flatMap { Self.decode($0, byteCount: P256PublicKey.byteCount) }.flatMap { try? P256PublicKey(parsing: $0) }
        guard (vapidKey == nil) == (vapid == nil) else { return nil }
        self.init(endpoint: endpoint, origin: origin, keys: keys, vapidKey: vapidKey)
    }

    /// nil unless the endpoint is valid: see ``WebPushOrigin/init(endpoint:)``.
    public init?(endpoint: String, keys: WebPushKeys, vapidKey: P256PublicKey? = nil) {
        guard endpoint.utf8.count <= Self.endpointByteLimit, let origin = WebPushOrigin(endpoint: endpoint) else { return nil }
        self.init(endpoint: endpoint, origin: origin, keys: keys, vapidKey: vapidKey)
    }

    private init(endpoint: String, origin: WebPushOrigin, keys: WebPushKeys, vapidKey: P256PublicKey?) {
        self.endpoint = endpoint
        self.origin = origin
        self.keys = keys
        self.vapidKey = vapidKey
    }

    /// Parses the JSON that browsers make; unknown members are ignored. nil for anything else, and for more than 4,096 bytes.
    public init?(json: [UInt8]) {
        guard json.count <= Self.jsonByteLimit, let members = try? JSONDecoder.decode(Members.self, fromForeign: json) else { return nil }
        self.init(endpoint: members.endpoint, p256dh: members.keys.p256dh, auth: members.keys.auth, vapid: members.vapid)
    }

    /// The JSON that browsers make, with the members in a fixed order.
    public var json: [UInt8] {
        let vapid = vapidKey.map { ",\"vapid\":\"\(Base64URL.encode($0.bytes))\"" } ?? ""
        // None of these characters needs an escape in JSON.
        return Array(
            """
            {"endpoint":"\(endpoint)","expirationTime":null,"keys":{"p256dh":"\(Base64URL.encode(keys.publicKey.bytes))",\
            "auth":"\(Base64URL.encode(keys.secret))"}\(vapid)}
            """.utf8)
    }

    private struct Members: Decodable {
        struct Keys: Decodable {
            let p256dh: String
            let auth: String
        }
        let endpoint: String
        let keys: Keys
        let vapid: String?
    }

    private static func decode(_ text: String, byteCount: Int) -> [UInt8]? {
        // Bounds the text first.
        guard text.utf8.count <= (byteCount + 2) / 3 * 4, let bytes = Base64URL.decode(text), bytes.count == byteCount else { return nil }
        return bytes
    }
}
