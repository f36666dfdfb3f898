import WakuCrypto

/// One message for one device: what must not be delivered twice. 32 bytes, whatever the sender chose for an id.
///
/// SHA-256(key hash(64) ‖ length of message_id as 8 bytes big-endian ‖ message_id ‖ installation id).
public struct DeliveryID: Hashable, Sendable {
    public static let byteCount = 32
    public let bytes: [UInt8]

    public init(messageID: [UInt8], key: RegistrationKey) {
        let length = withUnsafeBytes(of: UInt64(messageID.count).bigEndian, Array.init)
        bytes = SHA256.hash(key.keyHash.bytes, length, messageID, key.installationID.bytes)
    }

    /// nil unless there are 32 bytes.
    public init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        self.bytes = bytes
    }

    public var hex: String { hexString(bytes) }
}
