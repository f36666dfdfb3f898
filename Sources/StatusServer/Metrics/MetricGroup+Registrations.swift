package import NodeMetrics

extension MetricGroup {
    /// Stored registrations, and the keys of the topics on which they are queried.
    package static let registrations = MetricGroup(
        metrics: [.registrations, .topics, .topicKeysDerived, .topicKeysDerivedAhead],
        counters: [.registrationExpired, .topicKeyDerived, .topicKeyDerivedAhead])
}

extension Metric {
    package static let registrations = Metric(
        "waku_push_registrations", PlatformLabel.self, RegistrationStateLabel.self,
        help: "Installations, by platform and state. Unregistered ones have no platform.")
    package static let topics = Metric("waku_push_topics", help: "Topics on which queries are answered.")
    package static let topicKeysDerived = Metric(
        "waku_push_topic_keys_derived_total",
        help: "Symmetric keys of query topics that were derived because a query needed them, at 12 ms each.")
    package static let topicKeysDerivedAhead = Metric(
        "waku_push_topic_keys_derived_ahead_total",
        help: "Symmetric keys of query topics that were derived ahead of the first query, at idle priority.")
}

extension Counter {
    package static let registrationExpired = Counter("registration ended: not renewed", .registrationsRemoved, RemovalLabel.expired)
    package static let topicKeyDerived = Counter("topic key derived", .topicKeysDerived)
    package static let topicKeyDerivedAhead = Counter("topic key derived ahead", .topicKeysDerivedAhead)
}

package enum PlatformLabel: String, MetricLabel {
    package static let labelName = "platform"
    case apn, firebase
    /// Of what is no device any more.
    case none
}

package enum RegistrationStateLabel: String, MetricLabel {
    package static let labelName = "state"
    case registered
    case inDoubt = "in_doubt"
    case unregistered
}
