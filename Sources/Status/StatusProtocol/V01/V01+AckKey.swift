public import Waku
public import WakuCrypto

extension V01 {
    /// The key of a request's acknowledgement: 32 bytes, in the request as raw bytes or as 64 hexadecimal digits with or without `0x`.
    ///
    /// The acknowledgement is encrypted with these 32 bytes and published on the topic of the first 4 bytes of their SHA3-256.
    public struct AckKey: Sendable, Redacted {
        /// The key in the form used by the request; also the acknowledgement's id.
        public let named: [UInt8]
        /// The 32 bytes themselves, used without a key derivation.
        public let key: SymmetricKey
        /// The first 4 bytes of SHA3-256 of the key: the topic for the acknowledgement.
        public let topic: ContentTopic

        /// Returns nil for any other form: such a request is not acknowledged.
        public init?(_ named: [UInt8]) {
            let digits = named.starts(with: "0x".utf8) && named.count == 2 + 2 * SymmetricKey.byteCount ? Array(named.dropFirst(2)) : named
            let secret = V01.meaning(of: digits, byteCount: SymmetricKey.byteCount)
            guard let key = SymmetricKey(bytes: secret) else { return nil }
            self.named = named
            self.key = key
            topic = ContentTopic(TopicTag(rawValue: SHA3.hash256(secret).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }))
        }
    }
}
