/// Ranks nodes for a key by rendezvous hashing (highest random weight): each node has a pseudo-random weight for the key, and the node with
/// the highest weight has rank 0.
///
/// When a node comes or goes, the order of the others stays. So only the keys of that node move, and they spread evenly over the others.
///
///     weight(key, node) = mix(mix(key) ⊕ mix(node))      mix: the finalizer of SplitMix64, 64 bits
///
/// All nodes of a cluster must compute the same. A release that changes the function adds a case to ``HashingRules`` and keeps the old one:
/// the cluster follows the lowest version of its live nodes.
package enum RendezvousHash {
    /// The place of `node` in the order of `nodes` for `key`: 0 for the node whose turn it is. A node that is not among them ranks after all.
    package static func rank(of node: NodeID, for key: UInt64, among nodes: [NodeID]) -> Int {
        guard nodes.contains(node) else { return nodes.count }
        let mixed = mix(key)
        let own = (weight(mixed, node), node)
        return nodes.count { (weight(mixed, $0), $0) > own }
    }

    /// The node with rank 0; nil when there is none.
    package static func owner(of key: UInt64, among nodes: [NodeID]) -> NodeID? {
        let mixed = mix(key)
        return nodes.max { (weight(mixed, $0), $0) < (weight(mixed, $1), $1) }
    }

    private static func weight(_ mixedKey: UInt64, _ node: NodeID) -> UInt64 { mix(mixedKey ^ mix(node.rawValue)) }

    /// A bijection of 64 bits in which each input bit changes each output bit with probability one half.
    static func mix(_ value: UInt64) -> UInt64 {
        var mixed = value &+ 0x9E37_79B9_7F4A_7C15
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}

/// Versions of the functions by which nodes divide work. Nodes of two releases run together during an upgrade; all must use the same
/// functions, or each would leave a message to the other.
package enum HashingRules: Int, CaseIterable, Comparable, Sendable {
    /// ``RendezvousHash`` over message hashes, accounts and tasks; ``PartitionAssignment``.
    case first = 1

    package static func < (left: HashingRules, right: HashingRules) -> Bool { left.rawValue < right.rawValue }

    /// What this release knows at most.
    package static let latest = HashingRules.first

    /// - Parameter versions: the ``LeaseRow/hashingVersion`` of the live nodes.
    /// - Returns: the lowest of them; nil when this release does not know it any more, and must not share work with such a node.
    package static func common(to versions: some Sequence<Int>) -> HashingRules? {
        HashingRules(rawValue: min(versions.min() ?? latest.rawValue, latest.rawValue))
    }
}
