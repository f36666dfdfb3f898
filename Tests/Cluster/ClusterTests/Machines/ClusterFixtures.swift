@testable import Cluster
import Core

extension NodeID {
    static func number(_ number: UInt64) -> NodeID { NodeID(rawValue: number) }
}

extension HashingRules {
    /// Rules of a later release, with another order of the nodes.
    static let second = HashingRules(version: 2) { key, node in RendezvousHash.mix(key &+ RendezvousHash.mix(~node.rawValue)) }
}

/// Members of a cluster on a database that never fails and whose transactions take no time.
struct SmallCluster {
    var database: SimulatedDatabase
    var members: [ClusterMember] = []
    let configuration: ClusterConfiguration

    init(partitionCount: Int = 256, memberCount: Int = 0) {
        var configuration = ClusterConfiguration()
        configuration.partitionCount = partitionCount
        self.configuration = configuration
        database = SimulatedDatabase(configuration, mutation: nil)
        for number in 0..<memberCount { join(UInt64(number) + 1, at: 0) }
    }

    mutating func join(
        _ number: UInt64, at time: Milliseconds, knowing rules: [HashingRules] = HashingRules.known, named name: String? = nil
    ) {
        var configuration = configuration
        configuration.hashingRules = rules
        members.append(ClusterMember(.number(number), name: name ?? "host-\(number)", configuration: configuration, at: .at(time)))
    }

    /// Sends a member's heartbeat if one is due.
    @discardableResult
    mutating func beat(_ index: Int, at time: Milliseconds) -> [ClusterMember.Change] {
        guard let heartbeat = members[index].heartbeat(at: .at(time)) else { return [] }
        guard case .heartbeat(let view, _, _, _) = database.execute(.heartbeat(heartbeat), row: 0, began: time, at: time, clock: time)
        else { return [] }
        return members[index].heartbeatCommitted(view, at: .at(time))
    }

    /// Sends all heartbeats of these members during this time; stopped partitions are settled at once.
    @discardableResult
    mutating func beat(_ indices: [Int]? = nil, from start: Milliseconds, to end: Milliseconds) -> [[ClusterMember.Change]] {
        var changes = [[ClusterMember.Change]](repeating: [], count: members.count)
        for time in stride(from: start, through: end, by: 100) {
            for index in indices ?? Array(members.indices) {
                let new = beat(index, at: time)
                for case .stop(let partition) in new { members[index].settled(partition) }
                changes[index] += new
            }
        }
        return changes
    }

    /// Number of partitions by owner.
    var shares: [NodeID: Int] {
        database.partitions.reduce(into: [:]) { shares, row in
            if let owner = row.owner { shares[owner, default: 0] += 1 }
        }
    }
}
