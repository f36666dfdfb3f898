/// Content topics that a node learns while it runs, on which missed messages are looked up in a store besides those on its own topics.
public protocol LearnedContentTopics: Sendable {
    /// Whether the topic is learned now.
    func contains(_ topic: ContentTopic) -> Bool
    /// All topics that are learned now; nil if there are more than the limit.
    func topics(limit: Int) -> [ContentTopic]?
}
