package import Core

/// Finds leases that are over: those whose count of renewals has not changed for a whole lease, by this node's own clock.
///
/// The alternative, an `until` in the row that is compared with the database's clock, fails when that clock is set, and at a failover to a
/// standby whose clock differs: a step of more than the margin ends leases whose holders still post. (The simulation shows it:
/// `ClusterMutantTests`.) Counting needs no common clock; it only assumes that clocks run at the same rate, within margin / lease = 20 %.
///
/// Why it is safe: the count was read after the renewal had been committed, and that was after the holder sent it. The holder stops a lease
/// minus the margin after it sent; the observer ends the lease no earlier than a lease after it read, in a transaction that has the count as a
/// condition. A renewal that is committed in between makes that transaction fail.
///
/// Silence only counts while this node was itself in touch with the database (``restart()``): otherwise, after an outage, the first node to
/// reconnect would end the leases of all others.
package struct LeaseObserver: Sendable {
    private struct Observation {
        var renewals: UInt64
        var since: Instant
    }

    private let lease: Duration
    private var observations: [NodeID: Observation] = [:]

    package init(_ configuration: ClusterConfiguration) {
        lease = configuration.lease
    }

    /// - Parameters:
    ///   - rows: All leases that have not ended.
    ///   - now: When the rows had been received.
    package mutating func observed(_ rows: [LeaseRow], at now: Instant) {
        var current: [NodeID: Observation] = [:]
        for row in rows where row.state != .ended {
            if let known = observations[row.node], known.renewals == row.renewals {
                current[row.node] = known
            } else {
                current[row.node] = Observation(renewals: row.renewals, since: now)
            }
        }
        observations = current
    }

    /// Forgets since when others are silent: this node had lost touch itself.
    package mutating func restart() {
        observations = [:]
    }

    /// In the order of their ids: rows are always changed in the order of their keys.
    package func silent(at now: Instant, except own: NodeID) -> [Heartbeat.LeaseEnd] {
        observations.filter { $0.key != own && now - $0.value.since >= lease }
            .map { Heartbeat.LeaseEnd(node: $0.key, renewals: $0.value.renewals) }
            .sorted { $0.node < $1.node }
    }
}
