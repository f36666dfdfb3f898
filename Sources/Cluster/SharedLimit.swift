/// How a rate limit holds for the cluster, although each node counts for itself. A message is counted by the node that takes it, so each counts
/// about its n-th part.
package enum SharedLimit: Hashable, Sendable {
    /// Counted in the transaction of the message's effect: exact. For rates so low that a node's part of them would be less than one.
    case inTransaction
    /// Counted in memory, by each node up to its part.
    case divided(perMinute: Double, burst: Double)

    /// - Parameters:
    ///   - perMinute: the rate for the cluster. Below 1 it is counted in the transaction.
    ///   - burst: how many may come at once, in the cluster.
    ///   - nodes: live nodes (``ClusterMember/workers``); less than one counts as one.
    ///
    /// The burst's part is larger than its n-th: messages are distributed by hash, so of b messages a node gets b/n on average, with a deviation
    /// of about √(b/n). With twice that on top 98 % of those who keep to the limit are not refused. The sustained rate is divided exactly: who
    /// sends more than that for minutes is limited to the total.
    package init(perMinute: Double, burst: Double, nodes: Int) {
        let nodes = Double(max(nodes, 1))
        guard perMinute >= 1 || nodes == 1 else {
            self = .inTransaction
            return
        }
        let part = burst / nodes
        self = .divided(perMinute: perMinute / nodes, burst: max(1, min(burst, part + 2 * part.squareRoot())))
    }

    /// A count that is not a rate, such as the memory for waiting notifications: each node's part, at least one.
    package static func share(of total: Int, nodes: Int) -> Int { max(1, total / max(nodes, 1)) }
}
