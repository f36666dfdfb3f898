public import Core
import WakuCrypto

/// A message as it travels on the network, 14/WAKU2-MESSAGE. Its protobuf form is in `Protos/waku_message.proto`.
public struct WakuMessage: Hashable, Sendable {
    /// The maximum length of an encoded message on the network: 1 MiB.
    public static let maximumByteCount = 1 << 20
    /// The maximum length of ``meta``.
    public static let maximumMetaByteCount = 64

    /// The content, by the rules of ``version``; not empty on the network.
    public var payload: [UInt8]
    /// The topic by which receivers select the message.
    public var contentTopic: ContentTopic
    /// The payload's encryption version, 26/WAKU2-PAYLOAD: 1 for all messages that this package writes, see ``PayloadFrame``. Not covered by
    /// the message hash, so that everyone who forwards a message can change it; receivers here do not look at it.
    public var version: UInt32
    /// The time of sending by the sender's clock.
    public var timestamp: Timestamp
    /// Metadata of the application, not encrypted, at most ``maximumMetaByteCount`` bytes.
    public var meta: [UInt8]
    /// Whether stores should not keep the message.
    public var ephemeral: Bool

    /// Creates a message. Nodes do not forward one whose timestamp is far from the present.
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

    /// The deterministic message hash, 14/WAKU2-MESSAGE.
    ///
    ///     SHA-256(pubsub topic ‖ payload ‖ content topic ‖ meta ‖ timestamp(8, big-endian))
    public func hash(on pubsubTopic: PubsubTopic) -> MessageHash {
        let (first, second) = (pubsubTopic.rawValue.utf8, contentTopic.rawValue.utf8)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(first.count + payload.count + second.count + meta.count + 8)
        bytes += first
        bytes += payload
        bytes += second
        bytes += meta
        withUnsafeBytes(of: timestamp.rawValue.bigEndian) { bytes += $0 }
        return MessageHash(bytes: SHA256.hash(bytes))
    }
}

/// Identifies a message on its pubsub topic, deterministically: 32 bytes, 14/WAKU2-MESSAGE.
public struct MessageHash: Hashable, Sendable, CustomStringConvertible {
    /// The 32 bytes of the hash.
    public let bytes: [UInt8]
    /// - Parameter bytes: 32 bytes. Other lengths are accepted, but are no message's hash.
    public init(bytes: [UInt8]) { self.bytes = bytes }

    /// 64 lower-case hexadecimal digits, without `0x`.
    public var hex: String { hexString(bytes) }
    /// The same as ``hex``.
    public var description: String { hex }
}
