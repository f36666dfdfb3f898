public import Core

/// A query to a node's store, 13/WAKU2-STORE.
public struct StoreQuery: Hashable, Sendable {
    /// The maximum number of content topics in a query: stores refuse more.
    public static let maximumTopicCount = 10
    /// The maximum number of messages on a page: stores return no more.
    public static let maximumPageSize = 100

    /// Only messages on this topic are returned; nil returns those on any.
    public var pubsubTopic: PubsubTopic?
    /// Only messages on one of these topics are returned; without any, messages on all topics. At most ``maximumTopicCount``.
    public var contentTopics: [ContentTopic]
    /// The lowest timestamp of the messages to return, inclusive; nil for no limit.
    public var startTime: Timestamp?
    /// The highest timestamp of the messages to return, inclusive; nil for no limit.
    public var endTime: Timestamp?
    /// If not empty, only these messages are returned. At most ``Publication/lookUpLimit``. Leave topics and times unset then: nodes refuse queries
    /// with both.
    public var hashes: [MessageHash]
    /// The previous page's ``StorePage/cursor``; nil for the first page.
    public var cursor: String?
    /// Whether the response includes the messages, or only their hashes.
    public var includesMessages: Bool
    /// The maximum number of messages in the response, from 1 to ``maximumPageSize``; the nearest of these in place of other values.
    public var pageSize: Int {
        didSet { pageSize = Self.pageSize(nearestTo: pageSize) }
    }
    /// Whether the first page has the oldest messages, instead of the newest.
    public var isAscending: Bool

    /// The defaults query all messages of a store, oldest first, in pages of ``maximumPageSize``.
    public init(
        pubsubTopic: PubsubTopic? = nil, contentTopics: [ContentTopic] = [], startTime: Timestamp? = nil, endTime: Timestamp? = nil,
        hashes: [MessageHash] = [], cursor: String? = nil, includesMessages: Bool = true, pageSize: Int = StoreQuery.maximumPageSize,
        isAscending: Bool = true
    ) {
        self.pubsubTopic = pubsubTopic
        self.contentTopics = contentTopics
        self.startTime = startTime
        self.endTime = endTime
        self.hashes = hashes
        self.cursor = cursor
        self.includesMessages = includesMessages
        self.pageSize = Self.pageSize(nearestTo: pageSize)
        self.isAscending = isAscending
    }

    private static func pageSize(nearestTo size: Int) -> Int { min(max(1, size), maximumPageSize) }

    /// Whether a message is on the topics of the query. Other messages in a response are discarded.
    package func covers(_ message: ReceivedMessage) -> Bool {
        (pubsubTopic == nil || pubsubTopic == message.pubsubTopic)
            && (contentTopics.isEmpty || contentTopics.contains(message.message.contentTopic))
    }

    /// Queries for any number of content topics, ``maximumTopicCount`` in each; none without topics.
    package static func queries(
        pubsubTopics: [PubsubTopic], contentTopics: [ContentTopic], from startTime: Timestamp, isAscending: Bool = true
    ) -> [StoreQuery] {
        pubsubTopics.flatMap { pubsubTopic in
            contentTopics.chunks(of: maximumTopicCount).map { topics in
                StoreQuery(pubsubTopic: pubsubTopic, contentTopics: Array(topics), startTime: startTime, isAscending: isAscending)
            }
        }
    }
}

/// One page of a store's response. Nodes return the messages in ascending order of their timestamps, also when the pages are not.
public struct StorePage: Hashable, Sendable {
    /// The messages that could be decoded; empty when only hashes were requested.
    public let messages: [ReceivedMessage]
    /// The hashes of all messages of the page, as the store reports them.
    public let hashes: [MessageHash]
    /// The position of the next page, for ``StoreQuery/cursor``; nil on the last page.
    public let cursor: String?
    /// The messages that could not be decoded, or are invalid.
    package var unreadableCount = 0

    /// Creates a page.
    public init(messages: [ReceivedMessage], hashes: [MessageHash], cursor: String?) {
        self.messages = messages
        self.hashes = hashes
        self.cursor = cursor
    }
}
