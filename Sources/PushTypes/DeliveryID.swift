import WakuCrypto

/// One message for one device: what must not be delivered twice. 32 bytes, a hash that its protocol makes: no two protocols make the same.
public struct DeliveryID: Hashable, Sendable {
    public static let byteCount = 32
    public let bytes: [UInt8]

    /// nil unless there are 32 bytes.
    public init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = bytes
    }

    /// SHA-256 of the parts, one after the other.
    public init(hashing parts: [UInt8]...) {
        bytes = SHA256.hash(parts)
    }

    public var hex: String { hexString(bytes) }
}
