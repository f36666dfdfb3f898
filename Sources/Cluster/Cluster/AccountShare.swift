/// The Session accounts that this node monitors at the storage servers: the accounts for which it has rank 0. Each account has one node.
///
/// For some seconds after a membership change, two nodes with different views may monitor the same account. Both then receive its messages; the
/// delivery record, which is unique per message and device, lets only one of them take effect. When a node dies, messages to its accounts are not
/// reported until its lease is over and another node has subscribed at the storage servers, which do not repeat reports.
package struct AccountShare: Hashable, Sendable {
    package let node: NodeID
    /// The nodes that offered to monitor accounts. If it is empty, or if the nodes have no common hashing rules, each node monitors all accounts: see
    /// ``ClusterMember/accounts``.
    package let nodes: [NodeID]
    package let rules: HashingRules

    package init(of node: NodeID, among nodes: [NodeID], by rules: HashingRules) {
        self.node = node
        self.nodes = nodes.sorted()
        self.rules = rules
    }

    /// - Parameter account: 8 bytes of the account id after its prefix: part of a public key, so evenly distributed.
    package func contains(_ account: UInt64) -> Bool {
        nodes.isEmpty || RendezvousHash.owner(of: account, among: nodes, by: rules) == node
    }
}
