/// Notices failovers in the views that heartbeats read: nodes whose lease others ended, and a
/// database whose standby was promoted.
package struct FailoverLog: Hashable, Sendable {
    package enum Event: Hashable, Sendable {
        /// A node did not renew its lease: others took over its partitions.
        case nodeLost(name: String)
        /// The database is on a higher timeline than before: a standby was promoted.
        case databasePromoted(timeline: UInt32)
    }

    private var leases: [NodeID: LeaseRow] = [:]
    private var timeline: UInt32?

    /// - Parameter view: the view of this node's heartbeat. One that did not renew its lease is ignored.
    /// - Returns: the events since the last view, the promotion last.
    package mutating func observed(_ view: ClusterView) -> [Event] {
        guard view.isMember else { return [] }
        var events: [Event] = []
        for lease in view.leases {
            guard lease.state == .ended, let known = leases[lease.node], known.state == .live else { continue }
            // A node that ends its own lease renews it with that.
            if known.renewals == lease.renewals { events.append(.nodeLost(name: lease.name)) }
        }
        leases = Dictionary(uniqueKeysWithValues: view.leases.map { ($0.node, $0) })
        if let known = timeline, view.timeline > known { events.append(.databasePromoted(timeline: view.timeline)) }
        timeline = max(timeline ?? 0, view.timeline)
        return events
    }
}
