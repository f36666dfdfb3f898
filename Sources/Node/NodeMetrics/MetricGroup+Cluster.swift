extension MetricGroup {
    /// Cluster metrics: the node's lease, its share, and messages handled in place of other nodes. Without values on a single node.
    package static let cluster = MetricGroup(
        metrics: [
            .clusterLease, .clusterNodes, .clusterPartitions, .clusterMaintenance, .clusterUnowned, .clusterStandbys,
            .clusterStandbyLag, .clusterLastFailover, .clusterMessages,
        ],
        counters: [.clusterTaken, .clusterLeft, .clusterElsewhere, .clusterAnswered])
}

extension Metric {
    package static let clusterLease = Metric(
        "waku_push_cluster_lease", help: "1 while the lease of this node, one of several, is valid.")
    package static let clusterNodes = Metric("waku_push_cluster_nodes", help: "Nodes that share the messages, this one included.")
    package static let clusterPartitions = Metric(
        "waku_push_cluster_partitions", help: "Partitions of the devices, 256 in all, that this node posts for.")
    package static let clusterMaintenance = Metric(
        "waku_push_cluster_maintenance", help: "1 on the node that does maintenance for all nodes, 0 on others.")
    package static let clusterUnowned = Metric(
        "waku_push_cluster_unowned_partitions", help: "Partitions of the devices without a live owner, as this node sees them.")
    package static let clusterStandbys = Metric(
        "waku_push_cluster_standbys", help: "Standbys of the database. Without a value if this node's role may not see them.")
    package static let clusterStandbyLag = Metric(
        "waku_push_cluster_standby_lag_bytes",
        help:
            "Write-ahead log that the last standby has not applied, or an unused slot keeps; without a value if there is none or it is unknown."
    )
    package static let clusterLastFailover = Metric(
        "waku_push_cluster_last_failover_timestamp_seconds",
        help:
            "When this node last noticed that a node was lost or a standby of the database promoted; without a value if it did not since its start."
    )
    package static let clusterMessages = Metric(
        "waku_push_cluster_messages_total", ClusterLabel.self,
        help: "Messages assigned first to another node, by result.")
}

extension Counter {
    package static let clusterTaken = Counter("cluster: taken because nobody did", .clusterMessages, ClusterLabel.taken)
    package static let clusterLeft = Counter("cluster: handled by another node", .clusterMessages, ClusterLabel.left)
    package static let clusterElsewhere = Counter("cluster: claimed by another node meanwhile", .clusterMessages, ClusterLabel.claimed)
    package static let clusterAnswered = Counter("cluster: answered in place of another node", .clusterMessages, ClusterLabel.answered)
}

package enum ClusterLabel: String, MetricLabel {
    package static let labelName = "result"
    /// Another node handled the message in time.
    case left
    /// No other node handled the message in time, so this node did.
    case taken
    /// Another node had claimed the message before this node could store its effect.
    case claimed
    /// Another node had stored the message's effect but not answered in time, so this node answered.
    case answered
}
