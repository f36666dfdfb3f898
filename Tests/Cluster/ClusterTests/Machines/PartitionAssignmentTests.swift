@testable import Cluster
import Core
import Testing

@Suite struct PartitionAssignmentTests {
    private let nodes = (1...4).map { NodeID.number($0) }

    private func assign(_ partitions: [PartitionRow], among nodes: [NodeID]) -> [PartitionRow] {
        zip(partitions, PartitionAssignment.targets(partitions, among: nodes)).map { PartitionRow(owner: $1, epoch: $0.epoch + 1) }
    }

    private func counts(_ partitions: [PartitionRow]) -> [Int] {
        nodes.map { node in partitions.count { $0.owner == node } }.filter { $0 > 0 }.sorted()
    }

    @Test func withoutNodesNothingIsAssigned() {
        #expect(PartitionAssignment.targets([PartitionRow(owner: nodes[0])], among: []) == [nil])
        #expect(PartitionAssignment.targets([], among: nodes) == [])
    }

    @Test func sharesDifferByOneAtMostAfterAnyChange() {
        var random = SplitMix64(seed: 5)
        var partitions = [PartitionRow](repeating: PartitionRow(), count: 257)
        for _ in 0..<200 {
            let live = nodes.filter { _ in Bool.random(using: &random) }
            guard !live.isEmpty else { continue }
            partitions = assign(partitions, among: live)
            let counts = live.map { node in partitions.count { $0.owner == node } }
            #expect((counts.max() ?? 0) - (counts.min() ?? 0) <= 1 && counts.reduce(0, +) == 257)
        }
    }

    @Test func noMoreThanTheChangedSharesMove() {
        var random = SplitMix64(seed: 6)
        var partitions = assign([PartitionRow](repeating: PartitionRow(), count: 257), among: [nodes[0]])
        var live: Set<NodeID> = [nodes[0]]
        for _ in 0..<200 {
            let node = nodes[Int(random.next() % 4)]
            let before = partitions
            if live.contains(node), live.count > 1 {
                live.remove(node)
                partitions = assign(partitions, among: live.sorted())
                // Only partitions of the node that left have moved.
                for (old, new) in zip(before, partitions) where old.owner != node { #expect(old.owner == new.owner) }
            } else if !live.contains(node) {
                live.insert(node)
                partitions = assign(partitions, among: live.sorted())
                for (old, new) in zip(before, partitions) where old.owner != new.owner { #expect(new.owner == node) }
                #expect(partitions.count { $0.owner == node } == 257 / live.count)
            }
        }
    }

    @Test func fairDistributionStaysAsItIsWhicheverPartitionsANodeHas() {
        let partitions = (0..<257).map { PartitionRow(owner: nodes[($0 * 7) % 4], epoch: 3) }
        #expect(PartitionAssignment.targets(partitions, among: nodes.reversed()) == partitions.map(\.owner))
    }

    @Test func fewerPartitionsThanNodes() {
        #expect(counts(assign([PartitionRow(), PartitionRow()], among: nodes)) == [1, 1])
    }
}
