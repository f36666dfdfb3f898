import Core
import Waku
import WakuCrypto

/// A store query, 13/WAKU2-STORE version 3.
///
///     { 1 request id · 2 include data(bool) · 10 pubsub topic · 11 content topics* · 12 start time(sint64) · 13 end time(sint64) · 20 hashes*
///     · 51 cursor · 52 forward(bool) · 53 page size }
///
/// Times are message timestamps in nanoseconds. Nodes refuse queries with both hashes and topics or times.
extension StoreQuery {
    /// - Parameter requestID: At most 256 bytes. Servers repeat it in the response.
    func encoded(requestID: String) -> [UInt8] {
        var writer = ProtobufWriter()
        writer.field(1, requestID)
        writer.field(2, includesMessages)
        if let pubsubTopic { writer.field(10, pubsubTopic.rawValue) }
        for topic in contentTopics { writer.field(11, topic.rawValue) }
        if let startTime { writer.zigzagField(12, startTime.rawValue) }
        if let endTime { writer.zigzagField(13, endTime.rawValue) }
        for hash in hashes { writer.field(20, hash.bytes) }
        // Pages of nodes' HTTP interface have it with a prefix.
        if let cursor = cursor.flatMap({ bytes(hex: $0.hasPrefix("0x") ? $0.dropFirst(2) : $0[...]) }) { writer.field(51, cursor) }
        // Nodes take it for true if it is left out.
        writer.field(52, isAscending)
        writer.field(53, UInt64(pageSize))
        return writer.bytes
    }
}

/// The response of a store.
///
///     { 1 request id · 10 status · 11 text · 20 entries* { 1 hash · 2 Waku message · 3 pubsub topic } · 51 cursor }
struct StoreResponse: Hashable, Sendable {
    /// Nodes use message hashes of 32 bytes as cursors.
    static let maximumCursorByteCount = 256

    /// A stored message, or its hash alone.
    struct Entry: Hashable, Sendable {
        /// The deterministic message hash; computed from the message where there is one.
        let hash: MessageHash
        /// The message and its pubsub topic; nil when messages were not requested or this one cannot be decoded.
        let message: ReceivedMessage?
    }

    /// The id of the request.
    var requestID: String
    /// Whether the query succeeded; only then are there entries.
    var status: WakuStatus
    /// The messages of the page in order of their timestamps, at most `StoreQuery.maximumPageSize`.
    var entries: [Entry] = []
    /// The position of the next page; nil on the last page.
    var cursor: [UInt8]?
}

extension StoreResponse {
    /// The number of messages of a page that can't be decoded or are invalid.
    ///
    /// - Parameter includesMessages: Whether messages were requested.
    func unreadableCount(includesMessages: Bool) -> Int {
        guard includesMessages else { return 0 }
        return entries.count { $0.message.map { $0.message.flaw != nil } ?? true }
    }

    /// A hash that does not match its message is replaced with the message's actual hash.
    init(parsing bytes: [UInt8]) throws(ProtobufError) {
        self.init(requestID: "", status: WakuStatus(code: 0))
        var code: UInt32?
        var text = ""
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
            switch field.number {
            case 1: requestID = try field.string(of: reader, limit: WakuProtocol.maximumRequestIDByteCount)
            case 10: code = UInt32(truncatingIfNeeded: try field.varint())
            case 11: text = try field.statusText(of: reader)
            case 20:
                guard entries.count < StoreQuery.maximumPageSize else { throw .tooMany }
                entries.append(try Entry(field.nested(in: reader)))
            case 51: cursor = try field.bytes(of: reader, limit: Self.maximumCursorByteCount)
            default: break
            }
        }
        guard let code else { throw .malformed }
        status = WakuStatus(code: code, text: text)
        if cursor?.isEmpty == true { cursor = nil }
    }
}

extension StoreResponse.Entry {
    fileprivate init(_ nested: ProtobufReader) throws(ProtobufError) {
        var reader = nested
        var hash: MessageHash?
        var content: Range<Int>?
        var topic: PubsubTopic?
        while let field = try reader.next() {
            switch field.number {
            case 1: hash = try field.messageHash(of: reader)
            case 2: content = try field.content()
            case 3: topic = try field.pubsubTopic(of: reader)
            default: break
            }
        }
        guard let hash else { throw .malformed }
        // An invalid message does not invalidate the page.
        guard let content, let topic, let message = try? WakuMessage(parsing: Array(reader.bytes[content])) else {
            self.init(hash: hash, message: nil)
            return
        }
        let received = ReceivedMessage(message: message, pubsubTopic: topic)
        self.init(hash: received.hash, message: received)
    }
}

extension ProtobufReader.Field {
    func pubsubTopic(of reader: ProtobufReader) throws(ProtobufError) -> PubsubTopic {
        PubsubTopic(rawValue: try string(of: reader, limit: WakuProtocol.maximumTopicByteCount))
    }

    func contentTopic(of reader: ProtobufReader) throws(ProtobufError) -> ContentTopic {
        ContentTopic(rawValue: try string(of: reader, limit: WakuProtocol.maximumTopicByteCount))
    }

    func messageHash(of reader: ProtobufReader) throws(ProtobufError) -> MessageHash {
        let bytes = try bytes(of: reader, limit: 32)
        guard bytes.count == 32 else { throw .malformed }
        return MessageHash(bytes: bytes)
    }

    /// A description for operators: invalid UTF-8 does not invalidate the message.
    func statusText(of reader: ProtobufReader) throws(ProtobufError) -> String { Excerpt.of(reader.bytes[try content()]) }
}
