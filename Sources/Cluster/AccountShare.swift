/// Which of Session's accounts this node monitors at the storage servers: those that it ranks first for. Each account has one node.
///
/// Two nodes may monitor an account for some seconds after a change, when they know different nodes. Both then get its messages, and the record
/// of the delivery, which is unique for a message and a device, lets one of them take effect. An account without a node for as long as a lease
/// loses nothing either: the node that takes it over asks the storage servers from the last message that was stored.
package struct AccountShare: Hashable, Sendable {
    package let node: NodeID
    /// ``ClusterMember/workers``.
    package let nodes: [NodeID]

    package init(of node: NodeID, among nodes: [NodeID]) {
        self.node = node
        self.nodes = nodes.sorted()
    }

    /// - Parameter account: 8 bytes of the account id after its prefix: they are a public key's, evenly distributed.
    package func contains(_ account: UInt64) -> Bool {
        nodes.isEmpty || RendezvousHash.owner(of: account, among: nodes) == node
    }

    /// What to begin and to end monitoring, when the nodes change.
    ///
    /// - Parameters:
    ///   - next: the share from now on.
    ///   - accounts: all that are stored.
    package func changes(
        to next: AccountShare, of accounts: some Sequence<UInt64>
    ) -> (begun: [UInt64], ended: [UInt64]) {
        var changes: (begun: [UInt64], ended: [UInt64]) = ([], [])
        guard next != self else { return changes }
        for account in accounts {
            switch (contains(account), next.contains(account)) {
            case (false, true): changes.begun.append(account)
            case (true, false): changes.ended.append(account)
            default: break
            }
        }
        return changes
    }
}
