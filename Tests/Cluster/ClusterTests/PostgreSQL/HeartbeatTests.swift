import Core
import Storage
import StorePostgreSQL
import TestSupport
import Testing

@testable import Cluster

@Suite("Heartbeats in PostgreSQL", .timeLimit(.minutes(5)))
struct HeartbeatTests {
    private static let first = NodeID(rawValue: 1)
    /// Its sign bit is set as it is stored.
    private static let second = NodeID(rawValue: .max - 1)

    private func heartbeat(
        _ node: NodeID, isFirst: Bool = false, ends: [Heartbeat.LeaseEnd] = [], releases: [Heartbeat.Release] = [],
        takes: [Heartbeat.Take] = []
    ) -> Heartbeat {
        Heartbeat(lease: LeaseRow(node: node, name: "host"), isFirst: isFirst, ends: ends, releases: releases, takes: takes)
    }

    private func take(_ partition: PartitionNumber, _ epoch: UInt64) -> Heartbeat.Take {
        Heartbeat.Take(partition: partition, observedEpoch: epoch)
    }

    @Test("Two nodes share the partitions; when one stops, the other has them all after the lease")
    func membership() throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        var nodes = [TestNode(1, database)]
        try nodes.beat(0...2)
        #expect(nodes[0].owned.count == 257)
        nodes.append(TestNode(.max - 1, try fixture.database(), at: .start + .seconds(3)))
        try nodes.beat(3...8)
        #expect(nodes.map(\.owned.count).sorted() == [128, 129])
        #expect(Set(nodes.flatMap(\.owned)).count == 257)
        #expect(nodes[0].member.view?.leases.map(\.name).sorted() == ["host1", "host\(UInt64.max - 1)"])

        var left = [nodes[0]]
        try left.beat(9...12)
        #expect(left[0].owned.count == 129 || left[0].owned.count == 128)
        try left.beat(13...16)
        #expect(left[0].owned.count == 257)
        // It continues after its lease was ended.
        try nodes[1].beat(at: .start + .seconds(17))
        #expect(nodes[1].changes == [.ended])
    }

    @Test("A heartbeat that releases partitions notifies the other nodes, and no other one does")
    func releaseNotice() throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        defer { database.close() }
        _ = try database.heartbeat(heartbeat(Self.first, isFirst: true, takes: [take(0, 0), take(1, 0)]))
        let listener = database.listener(on: [ClusterDatabase.partitionsChannel])
        #expect(try listener.next(timeout: .zero) == .reconnected)
        _ = try database.heartbeat(heartbeat(Self.first, takes: [take(2, 0)]))
        _ = try database.heartbeat(heartbeat(Self.first, releases: [.init(partition: 0, epoch: 1, isSettled: true)]))
        #expect(try listener.next(timeout: .seconds(60) * TestTimeout.factor) == .notified([ClusterDatabase.partitionsChannel: [""]]))
    }

    @Test("A node that leaves ends its own lease, and no other")
    func leaving() throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        defer { database.close() }
        for node in [Self.first, Self.second] { _ = try database.heartbeat(heartbeat(node, isFirst: true)) }
        try database.leave(Self.first)
        let leases = try database.heartbeat(heartbeat(Self.second)).leases
        #expect(leases.filter { $0.state == .ended }.map(\.node) == [Self.first])
    }

    @Test("The view says which leases were not renewed for a whole lease")
    func overdueLeases() throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        defer { database.close() }
        for node in [Self.first, Self.second] { _ = try database.heartbeat(heartbeat(node, isFirst: true)) }
        #expect(try database.heartbeat(heartbeat(Self.second)).leases.map(\.isOverdue) == [false, false])
        try fixture.run("UPDATE cluster_node SET renewed_at = now() - interval '6 seconds'")
        let leases = try database.heartbeat(heartbeat(Self.second)).leases
        #expect(leases.filter(\.isOverdue).map(\.node) == [Self.first])
    }

    @Test("A heartbeat of a node that was ended changes nothing")
    func ended() throws {
        let database = try ClusterFixture().prepared()
        _ = try database.heartbeat(heartbeat(Self.first, isFirst: true))
        _ = try database.heartbeat(heartbeat(Self.second, isFirst: true))
        let view = try database.heartbeat(heartbeat(Self.second, ends: [.init(node: Self.first, renewals: 1)]))
        #expect(view.leases.first { $0.node == Self.first }?.state == .ended)
        for isFirst in [false, true] {
            let late = try database.heartbeat(heartbeat(Self.first, isFirst: isFirst, takes: [take(0, 0)]))
            #expect(!late.isMember)
        }
        let after = try database.heartbeat(heartbeat(Self.second))
        #expect(after.partitions[0] == PartitionRow())
        #expect(after.leases.first { $0.node == Self.first }?.renewals == 1)
    }

    @Test("Nodes of versions with different numbers of partitions don't share them")
    func otherPartitions() throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        _ = try database.heartbeat(heartbeat(Self.first, isFirst: true))
        try fixture.run("INSERT INTO cluster_partition (partition, epoch) VALUES (257, 0)")
        let error = #expect(throws: StoreError.self) { try database.heartbeat(heartbeat(Self.first)) }
        #expect(error?.code == .unsuitable)
        #expect(error?.message.contains("has the partitions of another version of waku-push") == true)
    }

    @Test("Missing rows of partitions are reported with the remedy, which works")
    func missingPartitions() throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        _ = try database.heartbeat(heartbeat(Self.first, isFirst: true))
        try fixture.run("DELETE FROM cluster_partition WHERE partition = 0")
        let attempts: [() throws -> Void] = [
            { _ = try database.heartbeat(heartbeat(Self.first)) }, { _ = try fixture.prepared() },
        ]
        for attempt in attempts {
            let error = #expect(throws: StoreError.self) { try attempt() }
            #expect(error?.code == .unsuitable)
            #expect(error?.message.contains("has 256 of 257 rows in cluster_partition: ") == true)
            #expect(error?.message.contains("stop all nodes, DELETE FROM cluster_partition, and start them") == true)
        }
        try fixture.run("DELETE FROM cluster_partition")
        let next = try fixture.prepared()
        #expect(try next.heartbeat(heartbeat(Self.second, isFirst: true)).partitions.count == 257)
    }

    @Test("A lease is ended only with the renewals that were observed, and a node without a row is no member")
    func conditions() throws {
        let database = try ClusterFixture().prepared()
        #expect(try !database.heartbeat(heartbeat(Self.first)).isMember)
        // Repeated, when its outcome was unknown.
        for renewals in [1, 2] as [UInt64] {
            #expect(try database.heartbeat(heartbeat(Self.first, isFirst: true)).leases.map(\.renewals) == [renewals])
        }
        let view = try database.heartbeat(heartbeat(Self.second, isFirst: true, ends: [.init(node: Self.first, renewals: 1)]))
        #expect(view.leases.map(\.state) == [.live, .live])
    }

    @Test("A partition without an owner, or whose owner's lease has ended, is taken, if it has the observed epoch")
    func takes() throws {
        let database = try ClusterFixture().prepared()
        var view = try database.heartbeat(heartbeat(Self.first, isFirst: true, takes: [take(0, 0), take(1, 7), take(256, 0)]))
        let own = PartitionRow(owner: Self.first, epoch: 1)
        #expect(view.partitions[0] == own && view.partitions[1] == PartitionRow() && view.partitions[256] == own)
        view = try database.heartbeat(heartbeat(Self.second, isFirst: true, takes: [take(0, 1)]))
        #expect(view.partitions[0] == own)
        // In one transaction: the end comes first.
        view = try database.heartbeat(
            heartbeat(Self.second, ends: [.init(node: Self.first, renewals: 1)], takes: [take(0, 1), take(256, 0)]))
        #expect(view.partitions[0] == PartitionRow(owner: Self.second, epoch: 2))
        #expect(view.partitions[256] == own)
    }

    @Test("One of several concurrent takes succeeds")
    func concurrentTakes() async throws {
        let fixture = try ClusterFixture()
        let databases = [try fixture.prepared()] + (try (0..<3).map { _ in try fixture.database() })
        for number in 0..<4 { _ = try databases[number].heartbeat(heartbeat(NodeID(rawValue: UInt64(number)), isFirst: true)) }
        let takes = (0..<257).map { take($0, 0) }
        let views = try await withThrowingTaskGroup(of: ClusterView.self) { group in
            for number in 0..<4 {
                let beat = heartbeat(NodeID(rawValue: UInt64(number)), takes: number.isMultiple(of: 2) ? takes : takes.reversed())
                group.addTask { try databases[number].heartbeat(beat) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let last = try databases[0].heartbeat(heartbeat(NodeID(rawValue: 0)))
        #expect(last.partitions.allSatisfy { $0.owner != nil && $0.epoch == 1 })
        // Partitions that a view shows as taken keep their owner.
        for view in views {
            for (partition, row) in view.partitions.enumerated() where row.owner != nil { #expect(row == last.partitions[partition]) }
        }
    }

    @Test("A release that is settled takes the partition's marks of this epoch away, others stay")
    func releases() async throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        _ = try database.heartbeat(heartbeat(Self.first, isFirst: true, takes: [take(3, 0), take(4, 0), take(5, 0)]))
        let rows = try await fixture.enqueue(3, 256 + 3, 4, 5, -253)
        for (row, epoch) in zip(rows, [1, 2, 1, 1, 1] as [Int64]) {
            try await fixture.store.commit(
                .change([ClusterFixture.mark(.integer(row), .integer(Self.first.stored), .integer(epoch))]))
        }
        let view = try database.heartbeat(
            heartbeat(
                Self.first,
                releases: [
                    .init(partition: 3, epoch: 1, isSettled: true), .init(partition: 4, epoch: 1, isSettled: false),
                    .init(partition: 5, epoch: 9, isSettled: true),
                ]))
        #expect(view.partitions[3...5].map(\.owner) == [nil, nil, Self.first])
        #expect(view.partitions[3...5].map(\.epoch) == [1, 1, 1])
        let marked = try fixture.run("SELECT row_id FROM cluster_mark ORDER BY row_id")
        #expect(try marked.map { try $0.integer(0) } == [rows[1], rows[2], rows[3]])
        #expect(
            try database.ids(of: ClusterFixture.outbox, by: ClusterFixture.device, in: [3, 5]) == [rows[0], rows[1], rows[3], rows[4]])
        let plan = try fixture.run("SET enable_seqscan = off", "EXPLAIN SELECT id FROM outbox WHERE (device & 255) = ANY('{3,5}')")
        #expect(plan.contains { "\($0)".contains("cluster_partition_of_outbox") })
        // A mark goes with its row.
        try fixture.run("DELETE FROM outbox")
        #expect(try fixture.count("cluster_mark") == 0)
    }

    @Test("Rows that a stopped node has locked are left out, and do not hold up a heartbeat")
    func lockedRows() throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        _ = try database.heartbeat(heartbeat(Self.first, isFirst: true, takes: [take(0, 0), take(1, 0)]))
        _ = try database.heartbeat(heartbeat(Self.second, isFirst: true))
        let stopped = try PostgreSQLConnection.open(fixture.address(), name: "test")
        _ = try stopped.run(["BEGIN", "SELECT FROM cluster_partition WHERE partition = 0 FOR SHARE"].map { Statement($0) })
        let view = try database.heartbeat(
            heartbeat(Self.second, ends: [.init(node: Self.first, renewals: 1)], takes: [take(0, 1), take(1, 1)]))
        #expect(view.partitions[0].owner == Self.first)
        #expect(view.partitions[1].owner == Self.second)
        stopped.rollBack()
        #expect(try database.heartbeat(heartbeat(Self.second, takes: [take(0, 1)])).partitions[0].owner == Self.second)
    }
}
