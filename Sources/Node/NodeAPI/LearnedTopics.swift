import Synchronization
public import Waku

/// Topics of a protocol that learns some of them from registrations, while it runs. They may have any form.
///
/// Messages missed while the node did not run are looked up on the learned topics too.
public final class LearnedTopics: WakuTopics, LearnedContentTopics {
    private struct State {
        var topics: Set<ContentTopic> = []
        var tags: Set<TopicTag> = []
    }

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
        state.withLock { state in
            for topic in topics where state.topics.insert(topic).inserted { state.tags.insert(topic.listeningTag) }
        }
    }

    /// Replaces the learned topics.
    public func replace(_ topics: some Sequence<ContentTopic>) {
        let topics = Set(topics)
        let tags = Set(topics.map(\.listeningTag))
        state.withLock { $0 = State(topics: topics, tags: tags) }
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
