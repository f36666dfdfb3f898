package import Core
package import Waku

/// The messages that a node needs from its relay.
package struct RelayNeeds: Sendable {
    package let pubsubTopics: [PubsubTopic]
    /// The node's own topics, on which missed messages are caught up.
    package let ownTopics: [ContentTopic]
    /// For each pubsub topic of earlier runs, the time up to which no message was missed.
    package let seenUntil: [PubsubTopic: Timestamp]
    /// Whether the node needs messages on this topic.
    package let wants: @Sendable (TopicTag) -> Bool
    /// The current topics, for a relay that must subscribe to each: the node's own, and those of registrants up to the limit.
    package internal(set) var contentTopics: @Sendable (_ limit: Int) -> [ContentTopic] = { _ in [] }
    /// The topics that protocols learn while they run, on which missed messages are caught up too.
    package internal(set) var learnedTopics: (any LearnedContentTopics)?
    /// Receives the relay's events.
    package let report: @Sendable (RelayEvent) -> Void
}

/// The learned topics of several protocols.
struct LearnedTopicsOfAll: LearnedContentTopics {
    private let parts: [any LearnedContentTopics]

    /// nil if no protocol learns topics.
    init?(_ parts: [any LearnedContentTopics]) {
        if parts.isEmpty { return nil }
        self.parts = parts
    }

    func contains(_ topic: ContentTopic) -> Bool { parts.contains { $0.contains(topic) } }

    func topics(limit: Int) -> [ContentTopic]? {
        var all: Set<ContentTopic> = []
        for part in parts {
            guard let topics = part.topics(limit: limit) else { return nil }
            all.formUnion(topics)
        }
        return all.count > limit ? nil : Array(all)
    }
}
