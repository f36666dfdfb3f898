/// The leases that were over before this node started, by the database's clock: those in a database that was restored from a backup, or of a cluster
/// that was switched off at once. They end as others that nobody renews, but operators need not know: this node saw no failover, and the settings in
/// them are those of no node.
package struct LeftoverLeases: Hashable, Sendable {
    /// The renewals of these leases in the first view; nil before it.
    private var renewals: [NodeID: UInt64]?

    package init() {}

    /// - Parameter view: the view of this node's heartbeat.
    /// - Returns: the view without these leases, as long as they are not renewed.
    package mutating func removed(from view: ClusterView) -> ClusterView {
        guard view.isMember else { return view }
        let leftovers = renewals ?? Dictionary(uniqueKeysWithValues: view.leases.filter(\.isOverdue).map { ($0.node, $0.renewals) })
        renewals = leftovers
        var view = view
        view.leases.removeAll { leftovers[$0.node] == $0.renewals }
        return view
    }
}
