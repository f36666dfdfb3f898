@testable import Cluster
import Core

/// A member whose heartbeats are carried out by a database. The test sets its time.
struct TestNode {
    let database: ClusterDatabase
    var member: ClusterMember
    var changes: [ClusterMember.Change] = []

    init(_ number: UInt64, _ database: ClusterDatabase, at now: Instant = .start) {
        self.database = database
        member = ClusterMember(NodeID(rawValue: number), name: "host\(number)", configuration: database.configuration, at: now)
    }

    /// Sends a heartbeat, if one is due.
    mutating func beat(at now: Instant) throws {
        guard let heartbeat = member.heartbeat(at: now) else { return }
        let view = try database.heartbeat(heartbeat)
        changes = member.heartbeatCommitted(view, at: now)
        for case .stop(let partition) in changes { member.settled(partition) }
    }

    var owned: [PartitionNumber] {
        member.view?.partitions.enumerated().filter { $1.owner == member.id }.map(\.offset) ?? []
    }
}

extension [TestNode] {
    /// Seconds pass, in each of which all of these send a heartbeat.
    mutating func beat(_ seconds: ClosedRange<Int64>) throws {
        for second in seconds {
            for index in indices { try self[index].beat(at: .start + .seconds(second)) }
        }
    }
}

extension Instant {
    static let start = Instant(sinceEpoch: .seconds(1000))
}
