import WakuCrypto

/// Identifies a message for a device, so that it is delivered once: a hash of 32 bytes. Each protocol hashes other fields, so that the ids of two
/// protocols do not coincide.
public struct DeliveryID: Hashable, Sendable {
    /// Length of an id in bytes.
    public static let byteCount = 32
    /// A SHA-256 digest, or 32 bytes as stored.
    public let bytes: [UInt8]

    /// nil unless there are 32 bytes.
    public init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = bytes
    }

    /// SHA-256 of the concatenated parts.
    public init(hashing parts: [UInt8]...) {
        bytes = SHA256.hash(parts)
    }

    /// Hashes all bytes at once: an array hashes its elements one by one, which costs as much as a query.
    public func hash(into hasher: inout Hasher) {
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }

    /// 64 lower-case digits, without `0x`.
    public var hex: String { hexString(bytes) }
}
