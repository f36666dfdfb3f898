package import Core
package import Waku

/// The messages that a node needs from its relay.
package struct RelayNeeds: Sendable {
    package let pubsubTopics: [PubsubTopic]
    /// The node's own topics, on which missed messages are caught up.
    package let ownTopics: [ContentTopic]
    /// Until when earlier runs missed nothing, for the pubsub topics that they listened on.
    package let seenUntil: [PubsubTopic: Timestamp]
    /// Whether the node needs messages on this topic.
    package let wants: @Sendable (TopicTag) -> Bool
    /// The current topics, for a relay that must subscribe to each: the node's own, and those of registrants up to the limit.
    package internal(set) var contentTopics: @Sendable (_ limit: Int) -> [ContentTopic] = { _ in [] }
    /// Receives the relay's events.
    package let report: @Sendable (RelayEvent) -> Void
}
