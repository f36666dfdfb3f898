public import Core
import WakuCrypto

/// A message as it travels on the network, 14/WAKU2-MESSAGE. Its protobuf form is in `Protos/waku_message.proto`.
public struct WakuMessage: Hashable, Sendable {
    /// The largest encoded message on the network.
    public static let maximumByteCount = 1 << 20
    public static let maximumMetaByteCount = 64

    public var payload: [UInt8]
    public var contentTopic: ContentTopic
    /// The payload's encryption version, 26/WAKU2-PAYLOAD: 1 for all messages that this package reads or writes, see ``PayloadFrame``.
    public var version: UInt32
    /// The time of sending by the sender's clock.
    public var timestamp: Timestamp
    public var meta: [UInt8]
    /// Whether stores should not keep the message.
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

/// Identifies a message on its pubsub topic, deterministically: 32 bytes, 14/WAKU2-MESSAGE.
public struct MessageHash: Hashable, Sendable, CustomStringConvertible {
    public let bytes: [UInt8]
    public init(bytes: [UInt8]) { self.bytes = bytes }

    public var hex: String { hexString(bytes) }
    public var description: String { hex }
}
