import Core
import Waku

/// A request of a light client to a filter node, 12/WAKU2-FILTER version 2.
///
///     { 1 request id · 2 kind · 10 pubsub topic · 11 content topics* }
struct FilterSubscribeRequest: Hashable, Sendable {
    /// The maximum number of content topics in a request. Nodes accept 1,000 per client, in several requests.
    static let maximumContentTopicCount = 100

    /// The operation on the client's subscriptions.
    enum Kind: UInt64, Hashable, Sendable {
        /// Checks whether the node has subscriptions of this client: 404 if not.
        case ping = 0
        /// Adds the content topics on the pubsub topic.
        case subscribe = 1
        /// Removes the content topics on the pubsub topic: 404 if the client has no subscription.
        case unsubscribe = 2
        /// Removes all of the client's subscriptions.
        case unsubscribeAll = 3
    }

    /// Chosen by the client, at most 256 bytes. Servers repeat it in the response.
    var requestID: String
    /// The operation.
    var kind: Kind
    /// The topic of the content topics; nil for a ping, or to remove all subscriptions.
    var pubsubTopic: PubsubTopic?
    /// The topics to add or remove, at most ``maximumContentTopicCount``; empty for a ping, or to remove all subscriptions.
    var contentTopics: [ContentTopic] = []

    func encoded() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.field(1, requestID)
        writer.field(2, kind.rawValue)
        if let pubsubTopic { writer.field(10, pubsubTopic.rawValue) }
        for topic in contentTopics { writer.field(11, topic.rawValue) }
        return writer.bytes
    }
}

/// A message that a filter node pushes to its client. There is no response.
///
///     { 1 Waku message · 2 pubsub topic }
struct FilterPush: Hashable, Sendable {
    /// The message and its pubsub topic.
    var message: ReceivedMessage
}

extension FilterPush {
    init(parsing bytes: [UInt8]) throws(ProtobufError) {
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
}
