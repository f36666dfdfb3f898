package import NodeMetrics

extension MetricGroup {
    /// Several identities of one node.
    package static let identities = MetricGroup(metrics: [.identityRegistrations])
}

extension Metric {
    package static let identityRegistrations = Metric(
        "waku_push_identity_registrations", IdentityLabel.self,
        help:
            "Registrations of the whole database, the same at each node, with each of several identities, in the order of --identity; absent with one."
    )
}

/// The position of an identity among the node's. As many as a node may have.
package enum IdentityLabel: String, MetricLabel {
    package static let labelName = "identity"
    case first = "1"
    case second = "2"
    case third = "3"
    case fourth = "4"
}
