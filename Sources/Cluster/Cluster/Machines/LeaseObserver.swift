package import Core

/// Finds leases that are over: those whose renewal count has not changed for a whole lease, by this node's own clock.
///
/// The alternative, an expiry time in the row that is compared with the database's clock, fails when that clock is set, and at a failover to a
/// standby whose clock differs: a step of more than the margin ends leases whose holders still post. (The simulation shows it: `ClusterMutantTests`.)
/// Counting needs no common clock; it only assumes that clocks run at the same rate, within margin / lease = 20 %.
/// Why it is safe: the count was read after the renewal was committed, which was after the holder sent it. The holder stops a lease minus the margin
/// after it sent the renewal; the observer ends the lease at the earliest a full lease after it read the count, in a transaction with the count as a
/// condition. A renewal that is committed in between makes that transaction fail.
/// Silence counts only while this node was itself connected to the database (``restart()``): otherwise, after an outage, the first node to reconnect
/// would end the leases of all others.
package struct LeaseObserver: Sendable {
    private struct Observation {
        var renewals: UInt64
        var since: Instant
        /// Whether the count has changed while it was observed.
        var isRenewed: Bool
    }

    private let lease: Duration
    private var observations: [NodeID: Observation] = [:]

    package init(_ configuration: ClusterConfiguration) {
        lease = configuration.lease
    }

    /// - Parameters:
    ///   - rows: all leases that have not ended.
    ///   - now: when the rows were received.
    package mutating func observed(_ rows: [LeaseRow], at now: Instant) {
        var current: [NodeID: Observation] = [:]
        for row in rows where row.state != .ended {
            if let known = observations[row.node], known.renewals == row.renewals {
                current[row.node] = known
            } else {
                current[row.node] = Observation(renewals: row.renewals, since: now, isRenewed: observations[row.node] != nil)
            }
        }
        observations = current
    }

    /// Restarts the measurement of silence, after this node itself was disconnected.
    package mutating func restart() {
        observations = [:]
    }

    /// The time since a lease's renewal count changed; nil for a lease that was not seen, or not since ``restart()``.
    package func silence(of node: NodeID, at now: Instant) -> Duration? { observations[node].map { now - $0.since } }

    /// Whether a lease was seen to be renewed, since ``restart()``.
    package func isRenewed(_ node: NodeID) -> Bool { observations[node]?.isRenewed ?? false }

    /// Leases that are over, in the order of their node ids, in which rows are always changed.
    package func silent(at now: Instant, except own: NodeID) -> [Heartbeat.LeaseEnd] {
        observations.filter { $0.key != own && now - $0.value.since >= lease }
            .map { Heartbeat.LeaseEnd(node: $0.key, renewals: $0.value.renewals) }
            .sorted { $0.node < $1.node }
    }
}
