/// The keys of a protocol that this node serves, for example accounts that it monitors at other servers: the keys for which it has rank 0. Each key
/// has one node.
///
/// For some seconds after a membership change, two nodes with different views may serve the same key, so a protocol needs another way to let only one
/// of them take effect, such as a delivery record that is unique per message and device. When a node dies, its keys are not served until its lease
/// is over.
package struct KeyAssignment: Hashable, Sendable {
    package let node: NodeID
    /// The nodes that offered to serve keys. If it is empty, or if the nodes have no common hashing rules, each node serves all keys: see
    /// ``ClusterMember/keys``.
    package let nodes: [NodeID]
    package let rules: HashingRules

    package init(of node: NodeID, among nodes: [NodeID], by rules: HashingRules) {
        self.node = node
        self.nodes = nodes.sorted()
        self.rules = rules
    }

    /// - Parameter key: 8 evenly distributed bytes.
    package func contains(_ key: UInt64) -> Bool {
        nodes.isEmpty || RendezvousHash.owner(of: key, among: nodes, by: rules) == node
    }
}
