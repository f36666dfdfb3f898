import Waku

/// The protocols of Waku that are spoken here, by their ids, and how long a frame of each may be.
///
/// Each request and each answer is a frame of its own, `length(varint) ‖ protobuf`, on a stream that is opened for it; a filter's pushes
/// come many on one stream, each a frame. The protobufs are read and written by hand, field after field, as `GossipSub` does it: lists end
/// at their limits before there is memory for them, a field that is absent differs from one that is zero, and the Waku messages inside are
/// handed on as the bytes that came.
public enum WakuProtocol {
    public static let relay = "/vac/waku/relay/2.0.0"
    public static let metadata = "/vac/waku/metadata/1.0.0"
    public static let store = "/vac/waku/store-query/3.0.0"
    public static let lightpush = "/vac/waku/lightpush/3.0.0"
    public static let lightpushOld = "/vac/waku/lightpush/2.0.0-beta1"
    public static let filterSubscribe = "/vac/waku/filter-subscribe/2.0.0-beta1"
    public static let filterPush = "/vac/waku/filter-push/2.0.0-beta1"

    /// The largest Waku message with what stands around it.
    public static let maximumMessageFrameByteCount = WakuMessage.maximumByteCount + 64 << 10
    /// Of metadata, of filter's and lightpush's answers and filter's requests.
    public static let maximumSmallFrameByteCount = 64 << 10
    /// A page of 100 messages of 160 KiB, or of fewer that are larger.
    public static let maximumStoreFrameByteCount = 16 << 20

    static let maximumRequestIDByteCount = 256
    static let maximumTopicByteCount = 256
    static let maximumStatusByteCount = 1024
}

/// How a request ended, as numbers that HTTP has too.
public struct WakuStatus: Hashable, Sendable, CustomStringConvertible {
    public let code: UInt32
    /// What the peer says about it: for people. Empty when it says nothing.
    public let text: String

    public init(code: UInt32, text: String = "") {
        self.code = code
        self.text = text
    }

    public var isSuccess: Bool { code == 200 }
    /// With the peer's words as printable ASCII: they come into logs.
    public var description: String {
        let words = String(String.UnicodeScalarView(text.unicodeScalars.filter { (0x20..<0x7F).contains($0.value) }))
        return words.isEmpty ? "status \(code)" : "status \(code): \(words)"
    }
}
