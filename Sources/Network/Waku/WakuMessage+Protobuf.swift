public import Core
import CPushMessages

extension WakuMessage {
    /// Decodes a message from protobuf, `Protos/waku_message.proto`. Any number of unknown fields is skipped.
    ///
    /// - Throws: `ProtobufError`; `tooMany` when the message or its meta is longer than the network allows.
    public init(parsing bytes: [UInt8]) throws(ProtobufError) {
        guard bytes.count <= Self.maximumByteCount else { throw .tooMany }
        try self.init(WakuMessageFields(parsing: bytes), of: bytes)
    }

    /// - Parameter bytes: The bytes that they were parsed from.
    /// - Throws: As ``init(parsing:)``.
    package init(_ fields: WakuMessageFields, of bytes: [UInt8]) throws(ProtobufError) {
        guard fields.meta.count <= Self.maximumMetaByteCount else { throw .tooMany }
        guard let contentTopic = String(validating: bytes[fields.contentTopic ?? 0..<0], as: UTF8.self) else { throw .notUTF8 }
        self.init(
            payload: Array(bytes[fields.payload ?? 0..<0]), contentTopic: ContentTopic(rawValue: contentTopic), version: fields.version,
            timestamp: Timestamp(rawValue: fields.timestamp), meta: Array(bytes[fields.meta]), ephemeral: fields.isEphemeral)
    }

    /// Encodes the message as protobuf, `Protos/waku_message.proto`. The length is not checked: see ``flaw``.
    public func encoded() -> [UInt8] {
        ProtobufC.encode(protobuf__waku_message__init) { message, arena in
            message.payload = arena.data(payload)
            message.content_topic = arena.data(contentTopic.rawValue)
            message.version = version
            message.timestamp = timestamp.rawValue
            message.meta = arena.data(meta)
            message.ephemeral = ephemeral ? 1 : 0
        }
    }
}
