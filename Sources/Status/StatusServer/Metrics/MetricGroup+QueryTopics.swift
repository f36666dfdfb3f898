package import NodeMetrics

extension MetricGroup {
    /// The symmetric keys of query topics.
    package static let queryTopics = MetricGroup(
        metrics: [.topics, .topicKeysDerived, .topicKeysDerivedAhead], counters: [.topicKeyDerived, .topicKeyDerivedAhead])
}

extension Metric {
    package static let topics = Metric("waku_push_topics", help: "Topics on which queries are answered.")
    package static let topicKeysDerived = Metric(
        "waku_push_topic_keys_derived_total",
        help: "Symmetric keys of query topics that were derived because a query needed them, at 7 ms each.")
    package static let topicKeysDerivedAhead = Metric(
        "waku_push_topic_keys_derived_ahead_total",
        help: "Symmetric keys of query topics that were derived ahead of the first query, at idle priority.")
}

extension Counter {
    package static let topicKeyDerived = Counter("topic key derived", .topicKeysDerived)
    package static let topicKeyDerivedAhead = Counter("topic key derived ahead", .topicKeysDerivedAhead)
}
