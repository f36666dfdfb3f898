import CPushMessages

extension WakuMessage {
    private static let fieldLimit = 64

    /// From its form on the wire, `Protos/waku_message.proto`.
    ///
    /// - Throws: ``ProtobufError``
    public init(parsing bytes: [UInt8]) throws(ProtobufError) {
        guard bytes.count <= Self.maximumByteCount else { throw .tooMany }
        try ProtobufScan.check(bytes, fieldLimit: Self.fieldLimit)
        self = try Protobuf__WakuMessage.withUnpacked(bytes) { message throws(ProtobufError) in
            guard message.pointee.meta.len <= Self.maximumMetaByteCount else { throw .tooMany }
            return WakuMessage(
                payload: message.pointee.payload.bytes,
                contentTopic: ContentTopic(rawValue: try message.pointee.content_topic.string()),
                version: message.pointee.version,
                timestamp: Timestamp(rawValue: message.pointee.timestamp),
                meta: message.pointee.meta.bytes,
                ephemeral: message.pointee.ephemeral != 0)
        }
    }

    public func encoded() -> [UInt8] {
        Protobuf__WakuMessage.packed { message, arena in
            message.payload = arena.data(payload)
            message.content_topic = arena.data(contentTopic.rawValue)
            message.version = version
            message.timestamp = timestamp.rawValue
            message.meta = arena.data(meta)
            message.ephemeral = ephemeral ? 1 : 0
        }
    }
}
