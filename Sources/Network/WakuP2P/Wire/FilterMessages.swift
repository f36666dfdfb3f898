public import Wire
public import Waku

/// A request of a light client to a filter node, 12/WAKU2-FILTER version 2.
///
///     { 1 request id · 2 kind · 10 pubsub topic · 11 content topics* }
public struct FilterSubscribeRequest: Hashable, Sendable {
    /// The maximum for one request; nodes accept 1,000 per client.
    public static let maximumContentTopicCount = 100

    public enum Kind: UInt64, Hashable, Sendable {
        /// Asks whether the node has subscriptions of this client: 404 if not.
        case ping = 0
        case subscribe = 1
        case unsubscribe = 2
        case unsubscribeAll = 3
    }

    public var requestID: String
    public var kind: Kind
    public var pubsubTopic: PubsubTopic?
    /// At most ``maximumContentTopicCount``.
    public var contentTopics: [ContentTopic]

    public init(requestID: String, kind: Kind, pubsubTopic: PubsubTopic? = nil, contentTopics: [ContentTopic] = []) {
        self.requestID = requestID
        self.kind = kind
        self.pubsubTopic = pubsubTopic
        self.contentTopics = contentTopics
    }

    public init(parsing bytes: [UInt8]) throws(ProtobufError) {
        self.init(requestID: "", kind: .ping)
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
            switch field.number {
            case 1: requestID = try field.string(of: reader, limit: WakuProtocol.maximumRequestIDByteCount)
            case 2:
                guard let kind = Kind(rawValue: try field.varint()) else { throw .malformed }
                self.kind = kind
            case 10: pubsubTopic = try field.pubsubTopic(of: reader)
            case 11:
                guard contentTopics.count < Self.maximumContentTopicCount else { throw .tooMany }
                contentTopics.append(try field.contentTopic(of: reader))
            default: break
            }
        }
    }

    public func encoded() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.field(1, requestID)
        writer.field(2, kind.rawValue)
        if let pubsubTopic { writer.field(10, pubsubTopic.rawValue) }
        for topic in contentTopics { writer.field(11, topic.rawValue) }
        return writer.bytes
    }
}

/// The response of a filter node.
///
///     { 1 request id · 10 status · 11 text }
public struct FilterSubscribeResponse: Hashable, Sendable {
    /// The node has no subscription of this client.
    public static let notFound: UInt32 = 404

    public var requestID: String
    public var status: WakuStatus

    public init(requestID: String, status: WakuStatus) {
        self.requestID = requestID
        self.status = status
    }

    public init(parsing bytes: [UInt8]) throws(ProtobufError) {
        var requestID = ""
        var code: UInt32?
        var text = ""
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
            switch field.number {
            case 1: requestID = try field.string(of: reader, limit: WakuProtocol.maximumRequestIDByteCount)
            case 10: code = UInt32(truncatingIfNeeded: try field.varint())
            case 11: text = try field.statusText(of: reader)
            default: break
            }
        }
        guard let code else { throw .malformed }
        self.init(requestID: requestID, status: WakuStatus(code: code, text: text))
    }

    public func encoded() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.field(1, requestID)
        writer.field(10, UInt64(status.code))
        if !status.text.isEmpty { writer.field(11, status.text) }
        return writer.bytes
    }
}

/// A message that a filter node pushes to its client. There is no response.
///
///     { 1 Waku message · 2 pubsub topic }
public struct FilterPush: Hashable, Sendable {
    public var message: ReceivedMessage

    public init(message: ReceivedMessage) {
        self.message = message
    }

    public init(parsing bytes: [UInt8]) throws(ProtobufError) {
        var content: Range<Int>?
        var topic: PubsubTopic?
        var reader = ProtobufReader(bytes)
        while let field = try reader.next() {
            switch field.number {
            case 1: content = try field.content()
            case 2: topic = try field.pubsubTopic(of: reader)
            default: break
            }
        }
        guard let topic else { throw .malformed }
        self.init(message: ReceivedMessage(message: try .read(content, of: bytes), pubsubTopic: topic))
    }

    public func encoded() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.field(1, message.message.encoded())
        writer.field(2, message.pubsubTopic.rawValue)
        return writer.bytes
    }
}
