import Synchronization
public import Waku

/// Topics of a protocol that learns some of them from registrations, while it runs. They may have any form.
///
/// Messages missed while no node ran are looked up on the protocol's own topics, not on learned ones.
public final class LearnedTopics: WakuTopics {
    private struct State {
        var topics: Set<ContentTopic> = []
        var tags: Set<TopicTag> = []
    }

    /// The topics that the protocol always listens on.
    public let own: [ContentTopic]
    private let ownTags: Set<TopicTag>
    private let learned = Mutex(State())

    /// - Parameter own: the topics of registrations and requests.
    public init(own: [ContentTopic]) {
        self.own = own
        ownTags = Set(own.map(\.listeningTag))
    }

    /// Adds learned topics.
    public func insert(_ topics: some Sequence<ContentTopic>) {
        learned.withLock { state in
            for topic in topics where state.topics.insert(topic).inserted { state.tags.insert(topic.listeningTag) }
        }
    }

    /// Replaces the learned topics.
    public func replace(_ topics: some Sequence<ContentTopic>) {
        let topics = Set(topics)
        let tags = Set(topics.map(\.listeningTag))
        learned.withLock { $0 = State(topics: topics, tags: tags) }
    }

    public var otherCount: Int { learned.withLock(\.topics.count) }
    public func contains(_ tag: TopicTag) -> Bool { ownTags.contains(tag) || learned.withLock { $0.tags.contains(tag) } }
    public func contentTopics(limit: Int) -> [ContentTopic] {
        let own = own.prefix(limit)
        return own + learned.withLock { Array($0.topics.prefix(limit - own.count)) }
    }
}
