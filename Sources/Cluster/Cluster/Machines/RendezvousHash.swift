import Core

/// Ranks nodes for a key by rendezvous hashing (highest random weight): each node has a pseudo-random weight for the key, and the node with
/// the highest weight has rank 0.
///
/// When a node joins or leaves, the order of the other nodes stays. So only the keys of that node move, and they spread evenly over the others.
///
/// All nodes of a cluster must compute the same: see ``HashingRules``.
package enum RendezvousHash {
    /// The rank of `node` among `nodes` for `key`: 0 for the first. A node that is not in `nodes` ranks last.
    package static func rank(of node: NodeID, for key: UInt64, among nodes: [NodeID], by rules: HashingRules) -> Int {
        guard nodes.contains(node) else { return nodes.count }
        let own = (rules.weight(key, node), node)
        return nodes.count { (rules.weight(key, $0), $0) > own }
    }

    /// The node with rank 0; nil when there is none.
    package static func owner(of key: UInt64, among nodes: [NodeID], by rules: HashingRules) -> NodeID? {
        nodes.max { (rules.weight(key, $0), $0) < (rules.weight(key, $1), $1) }
    }

    /// A bijection of 64 bits in which each input bit changes each output bit with probability one half: the first number of SplitMix64 with this seed.
    package static func mix(_ value: UInt64) -> UInt64 {
        var generator = SplitMix64(seed: value)
        return generator.next()
    }
}
