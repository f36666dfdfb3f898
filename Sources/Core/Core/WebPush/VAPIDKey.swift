public import WakuCrypto

/// The key by which a node identifies itself to push services, RFC 8292. Clients need its public half before they subscribe.
public struct VAPIDKey: Sendable {
    /// The private key that signs tokens.
    public let key: P256PrivateKey

    public init(_ key: P256PrivateKey) {
        self.key = key
    }

    /// Parses a key file: PEM, or 32 bytes in base64url. nil for anything else.
    public init?(file: [UInt8]) {
        let text = String(decoding: file, as: UTF8.self).filter { !$0.isWhitespace }
        if let bytes = Base64URL.decode(text), let key = P256PrivateKey(bytes: bytes) {
            self.init(key)
        } else if let key = P256PrivateKey(pem: file) {
            self.init(key)
        } else {
            return nil
        }
    }

    /// The public key in base64url: the parameter `k`, and the `applicationServerKey` of a subscription.
    public var publicKey: String { Base64URL.encode(key.publicKey.bytes) }

    /// A number that stored subscriptions have in place of the key: the first 8 bytes of its SHA-256.
    public static func mark(of key: P256PublicKey) -> Int64 {
        SHA256.hash(key.bytes).prefix(8).reduce(0) { $0 << 8 | Int64($1) }
    }

    /// The private key in base64url, for a key file.
    public var fileText: String { key.scalar.withBytes { Base64URL.encode(Array($0)) } }

    /// A JSON Web Token, signed by ES256.
    ///
    /// - Parameters:
    ///   - origin: the push service.
    ///   - contact: the operator's address, a `mailto:` or `https:` URL. See ``isContact(_:)``.
    ///   - expires: the end of its validity, Unix seconds; push services accept at most 24 hours ahead.
    public func token(for origin: WebPushOrigin, contact: String, expires: Int64) -> String {
        let header = Base64URL.encode(#"{"typ":"JWT","alg":"ES256"}"#.utf8)
        let claims = Base64URL.encode(#"{"aud":"\#(origin)","exp":\#(expires),"sub":"\#(contact)"}"#.utf8)
        let signed = header + "." + claims
        return signed + "." + Base64URL.encode(key.signature(of: Array(signed.utf8)))
    }

    /// The value of the header `Authorization`.
    public func authorization(_ token: String) -> String { "vapid t=\(token), k=\(publicKey)" }

    /// Whether a text is a `mailto:` or `https:` URL that needs no escapes in JSON.
    public static func isContact(_ text: String) -> Bool {
        guard text.utf8.count <= 256,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") })
        else { return false }
        if text.hasPrefix("mailto:") {
            return text.dropFirst(7).split(separator: "@", omittingEmptySubsequences: false).filter { !$0.isEmpty }.count == 2
        }
        return text.hasPrefix("https://") && text.utf8.count > 8
    }
}
