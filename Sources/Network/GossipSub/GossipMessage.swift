import Core

/// A message of a topic, encoded as it is forwarded: field 2 of an RPC.
///
///     0x12 ‖ length ‖ { 2 data · 4 topic }
///
/// The data is copied once, from the received frame, and shared by the cache, the queues and the validator.
public final class GossipMessage: Sendable, CustomStringConvertible {
    /// The topic's full name.
    public let topic: String
    /// SHA-256 of ``data``.
    public let id: MessageID
    /// The whole field, tag and length included.
    let field: [UInt8]
    private let dataRange: Range<Int>
    /// Until when a message that this node published is kept in queues that are shortened; nil for messages of others.
    let keptUntil: Instant?
    private let memory: MessageMemory?

    /// - Parameters:
    ///   - topic: The topic's full name.
    ///   - data: The message's data, for Waku the encoded Waku message. Any length: ``GossipSubRouter`` enforces the limit.
    public convenience init(topic: String, data: [UInt8]) {
        self.init(topic: topic, data: data[...], id: MessageID(of: data[...]))
    }

    init(topic: String, data: ArraySlice<UInt8>, id: MessageID, keptUntil: Instant? = nil, memory: MessageMemory? = nil) {
        self.topic = topic
        self.id = id
        self.keptUntil = keptUntil
        self.memory = memory
        let topicByteCount = topic.utf8.count
        let byteCount =
            2 + Varint.byteCount(UInt64(data.count)) + data.count + Varint.byteCount(UInt64(topicByteCount))
            + topicByteCount
        var writer = ProtobufWriter(capacity: 1 + Varint.byteCount(UInt64(byteCount)) + byteCount)
        writer.varint(0x12)
        writer.varint(UInt64(byteCount))
        writer.field(2, data)
        dataRange = writer.bytes.count - data.count..<writer.bytes.count
        writer.field(4, topic)
        field = writer.bytes
        memory?.add(self)
    }

    deinit {
        memory?.remove(self)
    }

    /// The message's data: a slice of the encoded field, not a copy.
    public var data: ArraySlice<UInt8> { field[dataRange] }
    /// The size that counts in queues and caches.
    var byteCount: Int { field.count }
    /// Topic and id.
    public var description: String { "\(topic) \(id)" }
}
