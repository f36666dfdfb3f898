import Core
import Waku

/// A request to publish a message, 19/WAKU2-LIGHTPUSH version 3.
///
///     { 1 request id · 20 pubsub topic · 21 Waku message }
struct LightpushRequest: Hashable, Sendable {
    /// Chosen by the client, at most 256 bytes. Servers repeat it in the response.
    var requestID: String
    /// The topic to publish on; nil lets the node derive it from the content topic.
    var pubsubTopic: PubsubTopic?
    /// The message to publish.
    var message: WakuMessage
}

extension LightpushRequest {
    init(parsing bytes: [UInt8]) throws(ProtobufError) {
        var requestID = ""
        var pubsubTopic: PubsubTopic?
        var content: Range<Int>?
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
            switch field.number {
            case 1: requestID = try field.string(of: reader, limit: WakuProtocol.maximumRequestIDByteCount)
            case 20: pubsubTopic = try field.pubsubTopic(of: reader)
            case 21: content = try field.content()
            default: break
            }
        }
        self.init(requestID: requestID, pubsubTopic: pubsubTopic, message: try .read(content, of: bytes))
    }

    func encoded() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.field(1, requestID)
        if let pubsubTopic { writer.field(20, pubsubTopic.rawValue) }
        writer.field(21, message.encoded())
        return writer.bytes
    }
}

/// The response to a lightpush request.
///
///     { 1 request id · 10 status · 11 text · 12 relay peer count }
struct LightpushResponse: Hashable, Sendable {
    /// The status code of a node that has no peers to send the message to.
    static let noPeers: UInt32 = 505

    /// The id of the request.
    var requestID: String
    /// Whether the node published the message.
    var status: WakuStatus
    /// The number of peers that the node sent the message to; nil when it does not report it.
    var relayPeerCount: UInt32?
}

extension LightpushResponse {
    init(parsing bytes: [UInt8]) throws(ProtobufError) {
        var requestID = ""
        var code: UInt32?
        var text = ""
        var count: UInt32?
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
            switch field.number {
            case 1: requestID = try field.string(of: reader, limit: WakuProtocol.maximumRequestIDByteCount)
            case 10: code = UInt32(truncatingIfNeeded: try field.varint())
            case 11: text = try field.statusText(of: reader)
            case 12: count = UInt32(truncatingIfNeeded: try field.varint())
            default: break
            }
        }
        guard let code else { throw .malformed }
        self.init(requestID: requestID, status: WakuStatus(code: code, text: text), relayPeerCount: count)
    }

    func encoded() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.field(1, requestID)
        writer.field(10, UInt64(status.code))
        if !status.text.isEmpty { writer.field(11, status.text) }
        if let relayPeerCount { writer.field(12, UInt64(relayPeerCount)) }
        return writer.bytes
    }
}

/// A request or response of the older lightpush version, 2.0.0-beta1, which has one message type for both.
///
///     { 1 request id · 2 request { 1 pubsub topic · 2 Waku message } · 3 response { 1 success(bool) · 2 text } }
struct OldLightpushMessage: Hashable, Sendable {
    /// A request or a response.
    enum Content: Hashable, Sendable {
        /// Publish the message on this topic.
        case request(PubsubTopic, WakuMessage)
        /// Whether the node accepted the message, and its description for operators, which may be empty.
        case response(isSuccess: Bool, text: String)
    }

    /// Chosen by the client, at most 256 bytes; the same in the response.
    var requestID: String
    /// The request or the response. When a message has both, the last one is parsed.
    var content: Content
}

extension OldLightpushMessage {
    init(parsing bytes: [UInt8]) throws(ProtobufError) {
        var requestID = ""
        var content: Content?
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
            switch field.number {
            case 1: requestID = try field.string(of: reader, limit: WakuProtocol.maximumRequestIDByteCount)
            case 2: content = try Self.request(field.nested(in: reader))
            case 3: content = try Self.response(field.nested(in: reader))
            default: break
            }
        }
        guard let content else { throw .malformed }
        self.init(requestID: requestID, content: content)
    }

    private static func request(_ nested: ProtobufReader) throws(ProtobufError) -> Content {
        var reader = nested
        var topic: PubsubTopic?
        var content: Range<Int>?
        while let field = try reader.next() {
            switch field.number {
            case 1: topic = try field.pubsubTopic(of: reader)
            case 2: content = try field.content()
            default: break
            }
        }
        guard let topic else { throw .malformed }
        return .request(topic, try .read(content, of: reader.bytes))
    }

    private static func response(_ nested: ProtobufReader) throws(ProtobufError) -> Content {
        var reader = nested
        var isSuccess = false
        var text = ""
        while let field = try reader.next() {
            switch field.number {
            case 1: isSuccess = try field.varint() != 0
            case 2: text = try field.statusText(of: reader)
            default: break
            }
        }
        return .response(isSuccess: isSuccess, text: text)
    }

    func encoded() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.field(1, requestID)
        switch content {
        case .request(let topic, let message):
            writer.field(2) { (request: inout ProtobufWriter) in
                request.field(1, topic.rawValue)
                request.field(2, message.encoded())
            }
        case .response(let isSuccess, let text):
            writer.field(3) { (response: inout ProtobufWriter) in
                response.field(1, isSuccess)
                if !text.isEmpty { response.field(2, text) }
            }
        }
        return writer.bytes
    }
}

extension WakuMessage {
    /// Reads a required nested Waku message.
    static func read(_ content: Range<Int>?, of bytes: [UInt8]) throws(ProtobufError) -> WakuMessage {
        guard let content else { throw .malformed }
        guard content.count <= WakuProtocol.maximumMessageFrameByteCount else { throw .tooLong }
        return try WakuMessage(parsing: Array(bytes[content]))
    }
}
