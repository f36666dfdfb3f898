public import Storage
import Synchronization
public import Waku

/// Topics of a protocol that learns some of them from registrations, while it runs. They may have any form.
///
/// Messages missed while the node did not run are looked up on the learned topics too. Topics of more than 256 bytes are ignored: a store refuses queries
/// that are too long, so that one topic would keep the node from all messages it missed.
public final class LearnedTopics: WakuTopics, LearnedContentTopics {
    private struct State {
        var topics: Set<ContentTopic> = []
        var tags: Set<TopicTag> = []
        var insertionCount = 0

        mutating func insert(_ added: some Sequence<ContentTopic>) {
            insertionCount += 1
            for topic in added where LearnedTopics.isShort(topic) && topics.insert(topic).inserted { tags.insert(topic.listeningTag) }
        }

        mutating func replace(_ all: some Sequence<ContentTopic>) {
            topics = Set(all.lazy.filter(LearnedTopics.isShort))
            tags = Set(topics.map(\.listeningTag))
        }
    }

    private static let byteLimit = 256

    private static func isShort(_ topic: ContentTopic) -> Bool { topic.rawValue.utf8.count <= byteLimit }

    /// The topics that the protocol always listens on.
    public let own: [ContentTopic]
    private let ownTags: Set<TopicTag>
    private let state = Mutex(State())

    public init(own: [ContentTopic]) {
        self.own = own
        ownTags = Set(own.map(\.listeningTag))
    }

    /// Adds learned topics.
    public func insert(_ topics: some Sequence<ContentTopic>) {
        state.withLock { $0.insert(topics) }
    }

    /// Replaces the learned topics.
    public func replace(_ topics: some Sequence<ContentTopic>) {
        state.withLock { $0.replace(topics) }
    }

    /// Replaces the learned topics by the result of a command. If topics were inserted meanwhile, which it may lack, all are kept.
    public func replace(by command: StoreCommand<[ContentTopic]>, in store: any Store) async throws(StoreError) {
        let insertionCount = state.withLock(\.insertionCount)
        let topics = try await store.commit(command)
        state.withLock { state in
            if state.insertionCount == insertionCount { state.replace(topics) } else { state.insert(topics) }
        }
    }

    public var learned: (any LearnedContentTopics)? { self }
    public var otherCount: Int { state.withLock(\.topics.count) }
    public func contains(_ tag: TopicTag) -> Bool { ownTags.contains(tag) || state.withLock { $0.tags.contains(tag) } }
    public func contains(_ topic: ContentTopic) -> Bool { state.withLock { $0.topics.contains(topic) } }
    public func topics(limit: Int) -> [ContentTopic]? { state.withLock { $0.topics.count > limit ? nil : Array($0.topics) } }
    public func contentTopics(limit: Int) -> [ContentTopic] {
        let own = own.prefix(limit)
        return own + state.withLock { Array($0.topics.prefix(limit - own.count)) }
    }
}
