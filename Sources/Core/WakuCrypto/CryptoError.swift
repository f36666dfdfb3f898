/// Why bytes are invalid. Does not disclose secrets.
public enum CryptoError: Error, Hashable, Sendable {
    /// Shorter than its fixed parts.
    case truncated
    /// Not a point on the curve, not in one of the two forms, or not a scalar in range.
    case invalidKey
    /// Not 65 bytes, V above 3, or no key can be recovered.
    case invalidSignature
    /// The tag does not match: altered, or another key.
    case authenticationFailed
}

extension CryptoError: CustomStringConvertible {
    /// A phrase, without the bytes.
    public var description: String {
        switch self {
        case .truncated: "too few bytes"
        case .invalidKey: "not a valid key: public keys have 65 or 33 bytes, private keys 32, each byte as two hexadecimal digits"
        case .invalidSignature: "not a valid signature"
        case .authenticationFailed: "altered, or encrypted with another key"
        }
    }
}
