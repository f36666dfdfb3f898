/// Which of Session's accounts this node monitors at the storage servers: those that it ranks first for. Each account has one node.
///
/// Two nodes may monitor an account for some seconds after a change, when they know different nodes. Both then get its messages, and the record
/// of the delivery, which is unique for a message and a device, lets one of them take effect. When a node dies, nobody is told of messages to its
/// accounts until its lease is over and another node has asked the storage servers: they don't repeat what they reported.
package struct AccountShare: Hashable, Sendable {
    package let node: NodeID
    /// Those that offered to monitor accounts. Without any, and without rules that all know, each node monitors all accounts: see
    /// ``ClusterMember/accounts``.
    package let nodes: [NodeID]
    package let rules: HashingRules

    package init(of node: NodeID, among nodes: [NodeID], by rules: HashingRules) {
        self.node = node
        self.nodes = nodes.sorted()
        self.rules = rules
    }

    /// - Parameter account: 8 bytes of the account id after its prefix: they are a public key's, evenly distributed.
    package func contains(_ account: UInt64) -> Bool {
        nodes.isEmpty || RendezvousHash.owner(of: account, among: nodes, by: rules) == node
    }
}
