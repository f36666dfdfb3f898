/// A version of the function by which nodes divide messages, accounts and tasks. Nodes of two releases run together during an upgrade; all must
/// use the same function, or each would leave a message to the other.
///
/// A release that changes the function adds a version to ``known`` and keeps the old one: the cluster follows the lowest of its live nodes
/// (``LeaseRow/hashingVersion``), and all of them the new one once the last older node has left.
package struct HashingRules: Hashable, Sendable {
    package let version: Int
    /// Of a node for a key: the highest has rank 0.
    let weight: @Sendable (_ key: UInt64, NodeID) -> UInt64

    package init(version: Int, weight: @escaping @Sendable (_ key: UInt64, NodeID) -> UInt64) {
        self.version = version
        self.weight = weight
    }

    ///     weight(key, node) = mix(mix(key) ⊕ mix(node))
    package static let first = HashingRules(version: 1) { key, node in
        RendezvousHash.mix(RendezvousHash.mix(key) ^ RendezvousHash.mix(node.rawValue))
    }

    /// Those of this release, in the order of their versions.
    package static let known = [first]

    /// - Parameters:
    ///   - versions: of the live nodes.
    ///   - known: of this node, in the order of their versions; at least one.
    /// - Returns: those of the lowest version; nil when this node does not know it any more, and must not share work with such a node.
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
