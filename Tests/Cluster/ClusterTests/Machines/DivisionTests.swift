import Cluster
import Core
import Testing

/// How work is divided: pure functions of the live nodes.
@Suite struct DivisionTests {
    private let nodes = (1...5).map { NodeID.number($0) }

    @Test func ranksOfAllNodesAreAPermutation() {
        for key in 0..<200 as Range<UInt64> {
            #expect(nodes.map { RendezvousHash.rank(of: $0, for: key, among: nodes, by: .first) }.sorted() == [0, 1, 2, 3, 4])
            #expect(
                RendezvousHash.owner(of: key, among: nodes, by: .first).map {
                    RendezvousHash.rank(of: $0, for: key, among: nodes, by: .first)
                } == 0)
            #expect(RendezvousHash.rank(of: .number(9), for: key, among: nodes, by: .first) == 5)
        }
        #expect(RendezvousHash.owner(of: 1, among: [], by: .first) == nil)
        #expect(RendezvousHash.rank(of: .number(1), for: 1, among: [], by: .first) == 0)
    }

    @Test func messagesAreSpreadEvenly() {
        var counts: [NodeID: Int] = [:]
        for key in 0..<10_000 as Range<UInt64> {
            if let owner = RendezvousHash.owner(of: key, among: nodes, by: .first) { counts[owner, default: 0] += 1 }
        }
        #expect(nodes.allSatisfy { abs((counts[$0] ?? 0) - 2000) < 200 })
    }

    @Test func orderOfTheOthersStaysWhenANodeLeaves() {
        for key in 0..<1000 as Range<UInt64> {
            let before = nodes.sorted { rank($0, key, nodes) < rank($1, key, nodes) }
            let rest = nodes.dropLast()
            let after = rest.sorted { rank($0, key, Array(rest)) < rank($1, key, Array(rest)) }
            #expect(before.filter { $0 != nodes[4] } == after)
        }
    }

    /// The values are part of the protocol between releases: they must not change.
    @Test func firstHashingRulesAreFixed() {
        let owners = (0..<16 as Range<UInt64>).map { RendezvousHash.owner(of: $0 << 40, among: nodes, by: .first)?.rawValue ?? 0 }
        #expect(owners == Self.expectedOwners)
        #expect([0, 1, 255, 256, 513].map { ClusterConfiguration().partition(ofRow: $0) } == [0, 1, 255, 0, 1])
    }

    @Test func clusterFollowsTheLowestVersionOfItsNodes() {
        #expect(HashingRules.common(to: [1, 1], among: [.first]) == .first)
        // A newer node beside this one: both use this node's rules.
        #expect(HashingRules.common(to: [1, 7], among: [.first]) == .first)
        #expect(HashingRules.common(to: [1, 2], among: [.first, .second]) == .first)
        #expect(HashingRules.common(to: [2, 2], among: [.first, .second]) == .second)
        #expect(HashingRules.common(to: [], among: [.first, .second]) == .second)
        // A node that is older than this release supports.
        #expect(HashingRules.common(to: [0, 1], among: [.first]) == nil)
        #expect(HashingRules.common(to: [1, 2], among: [.second]) == nil)
    }

    @Test func nodesOfTwoReleasesDivideMessagesByTheSameRules() {
        let keys = (0..<500 as Range<UInt64>).map { MessageKey(prefix: RandomKey.mix($0)) }
        var cluster = SmallCluster()
        cluster.join(1, at: 0, knowing: [.first])
        for number in 2...3 as ClosedRange<UInt64> { cluster.join(number, at: 0, knowing: [.first, .second]) }
        cluster.beat(from: 0, to: 3000)
        #expect(cluster.members.map(\.hashingRules) == [.first, .first, .first])
        for key in keys { #expect(cluster.members.map { $0.rank(of: key) }.sorted() == [0, 1, 2]) }
        // The older node has left: its lease is ended, and the others use the rules that both know.
        cluster.beat([1, 2], from: 3100, to: 12_000)
        let rest = cluster.members[1...]
        #expect(rest.allSatisfy { $0.hashingRules == .second })
        for key in keys { #expect(rest.map { $0.rank(of: key) }.sorted() == [0, 1]) }
        let byFirst = keys.map { RendezvousHash.rank(of: .number(2), for: $0.prefix, among: [.number(2), .number(3)], by: .first) }
        #expect(byFirst != keys.map { rest[1].rank(of: $0) })
        // It rejoins: all use its rules again.
        cluster.join(4, at: 12_100, knowing: [.first])
        cluster.beat([1, 2, 3], from: 12_100, to: 15_000)
        #expect(cluster.members[1...].allSatisfy { $0.hashingRules == .first })
    }

    @Test func aNodeBesideOneThatIsTooOldLeavesItTheMessagesAndServesAllKeys() {
        var cluster = SmallCluster()
        cluster.join(1, at: 0, knowing: [.first])
        cluster.join(2, at: 0, knowing: [.second])
        cluster.beat(from: 0, to: 3000)
        #expect(cluster.members[1].hashingRules == nil)
        for key in 0..<100 as Range<UInt64> {
            #expect(cluster.members[1].rank(of: MessageKey(prefix: key)) == 2)
            #expect(cluster.members[1].keys.contains(key))
        }
    }

    @Test func everyKeyHasOneNodeAndOnlyThoseOfAChangedNodeMove() {
        let keys = (0..<2000 as Range<UInt64>).map { RandomKey.mix($0) }
        let shares = nodes.map { KeyAssignment(of: $0, among: nodes, by: .first) }
        for key in keys { #expect(shares.count { $0.contains(key) } == 1) }
        let rest = Array(nodes.dropLast())
        for (node, share) in zip(rest, shares) {
            let after = KeyAssignment(of: node, among: rest, by: .first)
            for key in keys {
                // A node that stays keeps its keys, and those of the node that left go to the remaining ones.
                #expect(!share.contains(key) || after.contains(key))
                #expect(share.contains(key) || !after.contains(key) || shares[4].contains(key))
            }
        }
        for key in keys { #expect(rest.count { KeyAssignment(of: $0, among: rest, by: .first).contains(key) } == 1) }
        #expect(KeyAssignment(of: nodes[0], among: nodes, by: .first) == KeyAssignment(of: nodes[0], among: nodes.reversed(), by: .first))
        // A node that does not know the others yet serves all of them.
        #expect(KeyAssignment(of: nodes[0], among: [], by: .first).contains(keys[0]))
    }

    private func rank(_ node: NodeID, _ key: UInt64, _ nodes: [NodeID]) -> Int {
        RendezvousHash.rank(of: node, for: key, among: nodes, by: .first)
    }

    private static let expectedOwners: [UInt64] = [5, 3, 3, 3, 2, 1, 1, 1, 1, 3, 2, 2, 3, 3, 2, 3]
}

private enum RandomKey {
    static func mix(_ seed: UInt64) -> UInt64 {
        var generator = SplitMix64(seed: seed)
        return generator.next()
    }
}
