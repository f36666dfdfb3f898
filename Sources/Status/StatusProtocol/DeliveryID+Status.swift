public import Core
import WakuCrypto

extension DeliveryID {
    /// Of a Status message: SHA-256(key hash(64) ‖ length of message_id as 8 bytes big-endian ‖ message_id ‖ installation id). So it is 32
    /// bytes, whatever the sender chose for an id.
    public init(messageID: [UInt8], key: RegistrationKey) {
        let length = withUnsafeBytes(of: UInt64(messageID.count).bigEndian, Array.init)
        self.init(hashing: key.keyHash.bytes, length, messageID, key.installationID.bytes)
    }
}
