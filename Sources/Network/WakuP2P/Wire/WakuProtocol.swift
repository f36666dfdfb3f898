import Core
import Waku

/// The ids of the supported Waku protocols, and the maximum frame length of each.
///
/// Each request and response is one frame, `length(varint) ‖ protobuf`, on a stream of its own; filter nodes push many frames on one stream. The
/// protobufs are parsed field by field with `ProtobufReader`: limits are checked before memory is allocated, absent fields are distinguished
/// from zeros, and nested Waku messages are kept as the received bytes.
public enum WakuProtocol {
    public static let relay = "/vac/waku/relay/2.0.0"
    public static let metadata = "/vac/waku/metadata/1.0.0"
    public static let store = "/vac/waku/store-query/3.0.0"
    public static let lightpush = "/vac/waku/lightpush/3.0.0"
    public static let lightpushOld = "/vac/waku/lightpush/2.0.0-beta1"
    public static let filterSubscribe = "/vac/waku/filter-subscribe/2.0.0-beta1"
    public static let filterPush = "/vac/waku/filter-push/2.0.0-beta1"

    /// For frames with one Waku message: the largest message and its overhead.
    public static let maximumMessageFrameByteCount = WakuMessage.maximumByteCount + 64 << 10
    /// For metadata, filter requests, and responses of filter and lightpush.
    public static let maximumSmallFrameByteCount = 64 << 10
    /// For store responses: 100 messages of 160 KiB, or fewer and larger ones.
    public static let maximumStoreFrameByteCount = 16 << 20

    static let maximumRequestIDByteCount = 256
    static let maximumTopicByteCount = 256
    static let maximumStatusByteCount = 1024
}

/// The status of a response, with the numbers of HTTP.
public struct WakuStatus: Hashable, Sendable, CustomStringConvertible {
    public let code: UInt32
    /// The peer's description, for operators; may be empty.
    public let text: String

    public init(code: UInt32, text: String = "") {
        self.code = code
        self.text = text
    }

    public var isSuccess: Bool { code == 200 }
    /// The peer's text is limited to printable ASCII, since it gets into logs.
    public var description: String {
        let words = String(String.UnicodeScalarView(text.unicodeScalars.filter { (0x20..<0x7F).contains($0.value) }))
        return words.isEmpty ? "status \(code)" : "status \(code): \(words)"
    }
}
