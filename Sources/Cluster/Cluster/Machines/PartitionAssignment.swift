/// Computes the owner that each partition should have, as a pure function of the partitions' rows and the nodes that take partitions: every node
/// computes the same from the same rows, and acts only on its own part. Differing views are harmless, since each change has an epoch as its
/// condition.
///
/// - **Fair**: the nodes' partition counts differ by one at most.
/// - **Little movement**: a node keeps its partitions, up to its share. Only surplus and unowned partitions move. The larger shares go to the nodes
///   that own the most already, so a join moves P/n partitions, and a drain only those of the draining node.
/// - **Stable**: when every node has its share, nothing moves.
package enum PartitionAssignment {
    /// - Parameters:
    ///   - partitions: the rows, ordered by number.
    ///   - nodes: the nodes that take partitions (live and not draining), in any order.
    /// - Returns: the owner that each partition should have; nil for all when there are no nodes.
    package static func targets(_ partitions: [PartitionRow], among nodes: [NodeID]) -> [NodeID?] {
        guard !nodes.isEmpty else { return [NodeID?](repeating: nil, count: partitions.count) }
        var owned = Dictionary(uniqueKeysWithValues: nodes.map { ($0, 0) })
        for case let owner? in partitions.lazy.map(\.owner) { owned[owner]? += 1 }
        // Nodes with the most partitions first; ties by id.
        let order = nodes.sorted { (owned[$0] ?? 0, $1) > (owned[$1] ?? 0, $0) }
        let (share, larger) = partitions.count.quotientAndRemainder(dividingBy: nodes.count)
        var room: [NodeID: Int] = [:]
        for (place, node) in order.enumerated() { room[node] = place < larger ? share + 1 : share }

        var targets = [NodeID?](repeating: nil, count: partitions.count)
        for (number, partition) in partitions.enumerated() {
            if let owner = partition.owner, let left = room[owner], left > 0 {
                targets[number] = owner
                room[owner] = left - 1
            }
        }
        var takers = order[...]
        for number in partitions.indices where targets[number] == nil {
            while let taker = takers.first, (room[taker] ?? 0) == 0 { takers.removeFirst() }
            guard let taker = takers.first else { break }
            targets[number] = taker
            room[taker, default: 0] -= 1
        }
        return targets
    }
}
