public import WakuCrypto

/// The hashes of chats and authors in push messages: SHAKE-256 squeezed to 64 bytes.
public enum StatusHashes {
    /// `chat_id` of a notification, and the entries of the lists of chats: of the chat's id.
    public static func chat(_ id: String) -> [UInt8] {
        Shake256.hash64(Array(id.utf8))
    }

    /// `author` of a notification, and entries of `blocked_chat_list`: of `0x` + full hex.
    public static func author(_ key: PublicKey) -> [UInt8] {
        Shake256.hash64(Array(("0x" + key.hex).utf8))
    }
}
