public import Waku

/// Topics of a protocol: a look-up on 4 bytes decides whether a message is processed.
public protocol WakuTopics: Sendable {
    /// The node's own topics, for registrations and requests. Messages missed on them are retrieved later.
    var own: [ContentTopic] { get }
    /// Other topics on which missed messages are retrieved too; nil, the default, for none.
    var learned: (any LearnedContentTopics)? { get }
    /// The number of other topics that the protocol listens on now.
    var otherCount: Int { get }
    /// Whether the protocol listens on the topic of a `ContentTopic.listeningTag`. Topics may have the same tag, so handlers compare the
    /// whole topic where it matters.
    func contains(_ tag: TopicTag) -> Bool
    /// The node's own topics, and others up to the limit.
    func contentTopics(limit: Int) -> [ContentTopic]
}

extension WakuTopics {
    public var learned: (any LearnedContentTopics)? { nil }
    public var otherCount: Int { 0 }
    public func contains(_ tag: TopicTag) -> Bool { own.contains { $0.listeningTag == tag } }
    public func contentTopics(limit: Int) -> [ContentTopic] { Array(own.prefix(limit)) }
}

package struct NoTopics: WakuTopics {
    package let own: [ContentTopic] = []
}
