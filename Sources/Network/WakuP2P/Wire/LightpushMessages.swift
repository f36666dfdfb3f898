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

    func encoded() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.field(1, requestID)
        if let pubsubTopic { writer.field(20, pubsubTopic.rawValue) }
        writer.field(21, message.encoded())
        return writer.bytes
    }
}

/// A request of the older lightpush version, 2.0.0-beta1, which has one message type for requests and responses.
///
///     { 1 request id · 2 request { 1 pubsub topic · 2 Waku message } · 3 response { 1 success(bool) · 2 text } }
struct OldLightpushRequest: Hashable, Sendable {
    /// Chosen by the client, at most 256 bytes; the same in the response.
    var requestID: String
    /// The topic to publish on.
    var pubsubTopic: PubsubTopic
    /// The message to publish.
    var message: WakuMessage

    func encoded() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.field(1, requestID)
        writer.field(2) { (request: inout ProtobufWriter) in
            request.field(1, pubsubTopic.rawValue)
            request.field(2, message.encoded())
        }
        return writer.bytes
    }
}

/// The response to an ``OldLightpushRequest``. A message that has a request as well is parsed as a response.
struct OldLightpushResponse: Hashable, Sendable {
    /// The id of the request.
    var requestID: String
    /// Whether the node accepted the message.
    var isSuccess: Bool
    /// A description for operators, as in ``WakuStatus/text``.
    var text: String
}

extension OldLightpushResponse {
    init(parsing bytes: [UInt8]) throws(ProtobufError) {
        var requestID = ""
        var response: ProtobufReader?
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
            switch field.number {
            case 1: requestID = try field.string(of: reader, limit: WakuProtocol.maximumRequestIDByteCount)
            case 3: response = try field.nested(in: reader)
            default: break
            }
        }
        guard var response else { throw .malformed }
        self.init(requestID: requestID, isSuccess: false, text: "")
        while let field = try response.next() {
            switch field.number {
            case 1: isSuccess = try field.varint() != 0
            case 2: text = try field.statusText(of: response)
            default: break
            }
        }
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
