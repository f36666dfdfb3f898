public import Core
import WakuCrypto

extension DeliveryID {
    /// The delivery id of a Status message: SHA-256(key hash(64) ‖ length of message_id as 8 bytes big-endian ‖ message_id ‖ installation id in its stored form).
    /// Always 32 bytes, regardless of the length of the sender's message_id.
    public init(messageID: [UInt8], key: RegistrationKey) {
        let length = withUnsafeBytes(of: UInt64(messageID.count).bigEndian, Array.init)
        self.init(hashing: key.keyHash.bytes, length, messageID, key.storedInstallation)
    }
}
