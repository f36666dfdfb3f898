/// A version of the function by which nodes divide messages, keys and tasks. During an upgrade, nodes of two releases run together; all must use
/// the same function, since otherwise a message could be left to another node by each of them.
///
/// A release that changes the function adds a version to ``known`` and keeps the old one: the cluster uses the lowest version of its live nodes
/// (``LeaseRow/hashingVersion``), and so the new one once the last older node has left.
package struct HashingRules: Hashable, Sendable {
    package let version: Int
    /// The weight of a node for a key: the node with the highest has rank 0.
    let weight: @Sendable (_ key: UInt64, NodeID) -> UInt64

    ///     weight(key, node) = mix(mix(key) ⊕ mix(node))
    package static let first = HashingRules(version: 1) { key, node in
        RendezvousHash.mix(RendezvousHash.mix(key) ^ RendezvousHash.mix(node.rawValue))
    }

    /// The rules of this release, in the order of their versions.
    package static let known = [first]

    /// - Parameters:
    ///   - versions: the versions of the live nodes.
    ///   - known: the rules that this node supports, in the order of their versions; at least one.
    /// - Returns: the rules of the lowest version; nil when this node does not support it any more, and must not share work with such a node.
    package static func common(to versions: some Sequence<Int>, among known: [HashingRules]) -> HashingRules? {
        guard let latest = known.last else { return nil }
        let lowest = min(versions.min() ?? latest.version, latest.version)
        return known.first { $0.version == lowest }
    }

    package static func == (left: HashingRules, right: HashingRules) -> Bool { left.version == right.version }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(version)
    }
}
