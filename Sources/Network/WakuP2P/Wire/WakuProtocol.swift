import Core
import Waku

/// The ids of the supported Waku protocols, and the maximum frame length of each.
///
/// Each request and response is one frame, `length(varint) ‖ protobuf`, on a stream of its own; filter nodes push many frames on one stream. The
/// protobufs are parsed field by field with `ProtobufReader`: limits are checked before memory is allocated, absent fields are distinguished
/// from zeros, and nested Waku messages are parsed from the received bytes.
/// `init(parsing:)` and `encoded()` of the messages are about the protobuf, without the length prefix of the frame. A node is a client only: it writes
/// requests and reads responses.
enum WakuProtocol {
    /// Gossipsub with Waku's messages, 11/WAKU2-RELAY.
    static let relay = "/vac/waku/relay/2.0.0"
    /// The exchange of clusters and shards, 66/WAKU2-METADATA. See ``WakuMetadata``.
    static let metadata = "/vac/waku/metadata/1.0.0"
    /// Store queries, 13/WAKU2-STORE version 3. See ``StoreResponse``.
    static let store = "/vac/waku/store-query/3.0.0"
    /// Publishing for light clients, 19/WAKU2-LIGHTPUSH version 3. See ``LightpushRequest``.
    static let lightpush = "/vac/waku/lightpush/3.0.0"
    /// The older version of lightpush. See ``OldLightpushRequest``.
    static let lightpushOld = "/vac/waku/lightpush/2.0.0-beta1"
    /// Requests of light clients to filter nodes, 12/WAKU2-FILTER version 2. See ``FilterSubscribeRequest``.
    static let filterSubscribe = "/vac/waku/filter-subscribe/2.0.0-beta1"
    /// Messages that filter nodes push to light clients, 12/WAKU2-FILTER version 2. See ``FilterPush``.
    static let filterPush = "/vac/waku/filter-push/2.0.0-beta1"

    /// The limit for frames with one Waku message: the largest message and its overhead.
    static let maximumMessageFrameByteCount = WakuMessage.maximumByteCount + 64 << 10
    /// The limit for metadata, filter requests, and responses of filter and lightpush.
    static let maximumSmallFrameByteCount = 64 << 10
    /// The limit for store responses: 100 messages of 160 KiB, or fewer and larger ones.
    static let maximumStoreFrameByteCount = 16 << 20

    static let maximumRequestIDByteCount = 256
    static let maximumTopicByteCount = 256
}

/// The status of a response, with the numbers of HTTP.
struct WakuStatus: Hashable, Sendable, CustomStringConvertible {
    /// The status code, with the meaning of HTTP's where both have it: 200 is success.
    let code: UInt32
    /// The peer's description, for operators; may be empty. Parsing reduces it to an `Excerpt`, since it gets into logs.
    var text: String = ""

    /// Whether the code is 200.
    var isSuccess: Bool { code == 200 }
    /// Whether a lightpush node refuses a message because it has it already, which only the text tells.
    var isAlreadySeen: Bool { code == StatusResponse.invalidMessage && text.contains("already-seen") }
    var description: String { text.isEmpty ? "status \(code)" : "status \(code): \(text)" }
}

/// The response of a filter or lightpush node.
///
///     { 1 request id · 10 status · 11 text · 12 relay peer count }
struct StatusResponse: Hashable, Sendable {
    /// The status code of a filter node that has no subscription of this client.
    static let notFound: UInt32 = 404
    /// The status code of a lightpush node for a message that is invalid, too large, or ``WakuStatus/isAlreadySeen``.
    static let invalidMessage: UInt32 = 420

    /// The id of the request.
    var requestID: String
    /// Whether the operation succeeded; 429 when the node's rate limit is exceeded.
    var status: WakuStatus
    /// The number of peers that a lightpush node sent the message to; nil when it does not report it.
    var relayPeerCount: UInt32?
}

extension StatusResponse {
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
}
