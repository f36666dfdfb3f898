import WakuCrypto

/// A message as it travels on the network, 14/WAKU2-MESSAGE. Its protobuf form is in `Protos/waku_message.proto`.
public struct WakuMessage: Hashable, Sendable {
    /// The largest a message may be on the network: payload, topic and all.
    public static let maximumByteCount = 1 << 20
    public static let maximumMetaByteCount = 64

    public var payload: [UInt8]
    public var contentTopic: ContentTopic
    /// 1 for everything that this project reads or writes: ``PayloadFrame`` says how it is encrypted.
    public var version: UInt32
    /// The sender's clock.
    public var timestamp: Timestamp
    public var meta: [UInt8]
    /// Not to be kept by stores.
    public var ephemeral: Bool

    public init(
        payload: [UInt8], contentTopic: ContentTopic, version: UInt32 = 1, timestamp: Timestamp, meta: [UInt8] = [], ephemeral: Bool = false
    ) {
        self.payload = payload
        self.contentTopic = contentTopic
        self.version = version
        self.timestamp = timestamp
        self.meta = meta
        self.ephemeral = ephemeral
    }

    /// SHA-256(pubsub topic ‖ payload ‖ content topic ‖ meta ‖ timestamp as 8 bytes big-endian).
    public func hash(on pubsubTopic: PubsubTopic) -> MessageHash {
        let time = withUnsafeBytes(of: timestamp.rawValue.bigEndian, Array.init)
        let digest = SHA256.hash(Array(pubsubTopic.rawValue.utf8), payload, Array(contentTopic.rawValue.utf8), meta, time)
        return MessageHash(bytes: digest)
    }
}

/// Identifies a message on its pubsub topic, the same at every relay and store. 32 bytes.
public struct MessageHash: Hashable, Sendable, CustomStringConvertible {
    public let bytes: [UInt8]
    public init(bytes: [UInt8]) { self.bytes = bytes }

    public var hex: String { hexString(bytes) }
    public var description: String { hex }
}
