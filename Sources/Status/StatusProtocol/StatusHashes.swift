public import WakuCrypto

/// The hashes of chats and authors in push messages: SHAKE-256 squeezed to 64 bytes.
public enum StatusHashes {
    /// The hash of a chat's id: `chat_id` of a notification, and entries of the chat lists.
    public static func chat(_ id: String) -> [UInt8] {
        Shake256.hash64(Array(id.utf8))
    }

    /// The hash of `0x` + full hex of the key: `author` of a notification, and entries of `blocked_chat_list`.
    public static func author(_ key: PublicKey) -> [UInt8] {
        Shake256.hash64(Array(("0x" + key.hex).utf8))
    }
}
