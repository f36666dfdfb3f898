public import Core
import Foundation
public import WakuCrypto

/// The header `Authorization` of a push message, RFC 8292: `vapid t=<JWT>, k=<public key>`. The signature is checked by
/// ``isValid(by:for:at:)``.
public struct VAPIDAuthorization: Sendable {
    /// The maximum length of the header in bytes.
    public static let byteLimit = 2048
    /// RFC 8292: a token must expire within 24 hours.
    public static let longestLifetime = Duration.seconds(24 * 3600)
    private static let scheme = "vapid "

    /// The key that the server claims to have.
    public let key: P256PublicKey
    /// The end of the token, `exp`.
    public let expires: Timestamp
    private let audience: String
    private let signed: [UInt8]
    private let signature: [UInt8]

    private struct Header: Decodable {
        let alg: String
    }

    private struct Claims: Decodable {
        let aud: String
        let exp: Int64
    }

    /// Parses the header's value; nil for anything else, and for more than 2,048 bytes.
    public init?(parsing text: String) {
        guard text.utf8.count <= Self.byteLimit, text.prefix(Self.scheme.count).lowercased() == Self.scheme else { return nil }
        var parameters: [String: String] = [:]
        for part in text.dropFirst(Self.scheme.count).split(separator: ",", omittingEmptySubsequences: false) {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = pair[0].trimmingCharacters(in: .whitespaces).lowercased()
            guard pair.count == 2, parameters[name] == nil else { return nil }
            parameters[name] = pair[1].trimmingCharacters(in: .whitespaces)
        }
        guard let token = parameters["t"],
            let key = parameters["k"].flatMap({ Base64URL.decode($0) }).flatMap({ try? P256PublicKey(parsing: $0) })
        else { return nil }
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let header: Header = Self.decode(parts[0]), header.alg == "ES256",
            let claims: Claims = Self.decode(parts[1]), let signature = Base64URL.decode(parts[2])
        else { return nil }
        self.key = key
        audience = claims.aud
        expires = Timestamp(rawValue: 0) + .seconds(min(max(claims.exp, 0), 1 << 33))
        signed = Array((parts[0] + "." + parts[1]).utf8)
        self.signature = signature
    }

    private static func decode<Value: Decodable>(_ text: Substring) -> Value? {
        Base64URL.decode(text).flatMap { try? JSONDecoder.decode(Value.self, fromForeign: $0) }
    }

    /// Whether the server with this key signed the token, for this origin, and the token is valid at this time.
    public func isValid(by server: P256PublicKey, for origin: WebPushOrigin, at now: Timestamp) -> Bool {
        key == server && audience == origin.description && now < expires && expires.since(now) <= Self.longestLifetime
            && key.isValid(signature, of: signed)
    }
}
