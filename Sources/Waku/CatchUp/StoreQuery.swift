/// What to ask a node's store, 13/WAKU2-STORE.
public struct StoreQuery: Hashable, Sendable {
    /// More content topics than this are refused.
    public static let maximumTopicCount = 10
    public static let maximumPageSize = 100

    public var pubsubTopic: PubsubTopic?
    /// Any of these; any at all when empty. At most ``maximumTopicCount``.
    public var contentTopics: [ContentTopic]
    /// By the senders' clocks, both ends included.
    public var startTime: Timestamp?
    public var endTime: Timestamp?
    /// Only these messages. At most ``Publication/lookUpLimit``; times and topics are left out beside them.
    public var hashes: [MessageHash]
    /// Where the page before ended, as ``StorePage/cursor`` gave it.
    public var cursor: String?
    /// Whether messages are asked for, or their hashes alone.
    public var includesMessages: Bool
    /// At most ``maximumPageSize``.
    public var pageSize: Int

    public init(
        pubsubTopic: PubsubTopic? = nil, contentTopics: [ContentTopic] = [], startTime: Timestamp? = nil, endTime: Timestamp? = nil,
        hashes: [MessageHash] = [], cursor: String? = nil, includesMessages: Bool = true, pageSize: Int = StoreQuery.maximumPageSize
    ) {
        self.pubsubTopic = pubsubTopic
        self.contentTopics = contentTopics
        self.startTime = startTime
        self.endTime = endTime
        self.hashes = hashes
        self.cursor = cursor
        self.includesMessages = includesMessages
        self.pageSize = pageSize
    }

    /// Whether a message is on the topics that are asked about. Stores that answer others are not believed.
    package func covers(_ message: ReceivedMessage) -> Bool {
        (pubsubTopic == nil || pubsubTopic == message.pubsubTopic)
            && (contentTopics.isEmpty || contentTopics.contains(message.message.contentTopic))
    }

    /// As many queries as the topics need, at most ten in each; none without topics.
    package static func queries(
        pubsubTopics: [PubsubTopic], contentTopics: [ContentTopic], from startTime: Timestamp, to endTime: Timestamp? = nil
    ) -> [StoreQuery] {
        pubsubTopics.flatMap { pubsubTopic in
            stride(from: 0, to: contentTopics.count, by: maximumTopicCount).map { start in
                StoreQuery(
                    pubsubTopic: pubsubTopic,
                    contentTopics: Array(contentTopics[start..<min(start + maximumTopicCount, contentTopics.count)]),
                    startTime: startTime, endTime: endTime)
            }
        }
    }
}

/// One page of a store's answer, oldest first by the senders' clocks.
public struct StorePage: Hashable, Sendable {
    /// Those that could be read; empty when only hashes were asked for.
    public let messages: [ReceivedMessage]
    /// Of all messages on the page, as the store tells them.
    public let hashes: [MessageHash]
    /// For the next page; nil at the end.
    public let cursor: String?

    public init(messages: [ReceivedMessage], hashes: [MessageHash], cursor: String?) {
        self.messages = messages
        self.hashes = hashes
        self.cursor = cursor
    }
}
