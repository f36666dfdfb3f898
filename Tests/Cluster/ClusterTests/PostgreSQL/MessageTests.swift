import Storage
import StorePostgreSQL
import TestSupport
import Testing

@testable import Cluster

@Suite("Messages shared by PostgreSQL", .timeLimit(.minutes(5)))
struct MessageTests {
    private static let insert = Storage.Mutation(
        ClaimTable.table, .insert([ClaimTable.hour, ClaimTable.key, ClaimTable.node, ClaimTable.kind]))
    private static let takeOver = Storage.Mutation(
        ClaimTable.table, .update([ClaimTable.node], where: [.equal(ClaimTable.hour), .equal(ClaimTable.key)]))
    private static let find = Query(ClaimTable.table, [.id, ClaimTable.node], where: [.equal(ClaimTable.hour), .equal(ClaimTable.key)])

    private let first = NodeID(rawValue: 1)
    private let second = NodeID(rawValue: .max)

    private func claim(_ key: MessageKey, in hour: ClaimWindow.Hour, by node: NodeID) -> StoreCommand<Void> {
        .change([Self.insert(.integer(hour), .bytes(key.bytes), .integer(node.stored), .integer(2))])
    }

    // MARK: Claims

    @Test("A claim is inserted once; without a partition its command fails, and the others of its batch do not")
    func claims() async throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        let hour = ClaimWindow.hour(of: try database.now())
        let (key, other, late) = (MessageKey(prefix: 1), MessageKey(prefix: .max, second: 2, third: 3, fourth: 4), MessageKey(prefix: 2))
        let results = await fixture.store.commitEach([
            claim(key, in: hour, by: first), claim(late, in: hour - 100, by: first), claim(key, in: hour, by: second),
            claim(other, in: hour - 1, by: second),
        ])
        #expect(results.map { (try? $0.get()) != nil } == [true, false, false, true])
        let found = try database.claims([(hour, key), (hour - 1, other), (hour, other), (hour - 100, late)])
        #expect(found == [key: Claim(node: first, kind: .request), other: Claim(node: second, kind: .request)])
        #expect(try database.claims([]).isEmpty)

        try await fixture.store.commit(.change([Self.takeOver(.integer(second.stored), .integer(hour), .bytes(key.bytes))]))
        #expect(try database.claims([(hour, key)]) == [key: Claim(node: second, kind: .request)])
        let rows = try fixture.store.read(StoreCommand.find(Self.find(.integer(hour), .bytes(key.bytes))) { .done($0) })
        #expect(try rows.map { try $0.integer(1) } == [second.stored])
    }

    @Test("The owner of maintenance drops old hours and creates new ones; dropped hours are not created again")
    func maintenance() async throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        let now = try database.now()
        let hour = ClaimWindow.hour(of: now)
        #expect(try database.claimWindow().firstHour == ClaimWindow.hour(of: now - ClaimWindow.retention))
        #expect(try database.claimWindow().lastHour > hour)
        #expect(try !database.maintain(owner: first, epoch: 1))
        _ = try own(256, database)
        // As if two hours had passed: an old one is there, and one is missing.
        try fixture.run(
            "CREATE TABLE \"claim_\(hour - 9)\" PARTITION OF claim FOR VALUES IN (\(hour - 9))", "DROP TABLE \"claim_\(hour + 1)\"",
            "UPDATE cluster SET first_hour = \(hour - 9)")
        let key = MessageKey(prefix: 1)
        try await fixture.store.commit(claim(key, in: hour - 9, by: first))
        #expect(try !database.maintain(owner: first, epoch: 2))
        #expect(try !database.maintain(owner: second, epoch: 1))
        #expect(try database.claims([(hour - 9, key)]).count == 1)
        await #expect(throws: StoreError.self) { try await fixture.store.commit(claim(key, in: hour + 1, by: first)) }
        #expect(try database.maintain(owner: first, epoch: 1))
        #expect(try database.claims([(hour - 9, key)]).isEmpty)
        await #expect(throws: StoreError.self) { try await fixture.store.commit(claim(key, in: hour - 9, by: first)) }
        try await fixture.store.commit(claim(key, in: hour + 1, by: first))

        // The clock was set back since an hour was stored.
        try fixture.run("UPDATE cluster SET first_hour = \(hour + 10)")
        #expect(try database.maintain(owner: first, epoch: 1))
        #expect(try database.claimWindow() == ClaimWindow(firstHour: hour + 10, lastHour: hour + 10))
        await #expect(throws: StoreError.self) { try await fixture.store.commit(claim(key, in: hour, by: first)) }
        #expect(try fixture.run("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'claim'::regclass").count == 1)
    }

    @Test("A drop that has to wait too long is given up, and new partitions are created")
    func busyClaims() async throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        let firstHour = try database.claimWindow().firstHour
        let next = ClaimWindow.hour(of: try database.now()) + 1
        _ = try own(256, database)
        try fixture.run(
            "CREATE TABLE \"claim_1\" PARTITION OF claim FOR VALUES IN (1)", "UPDATE cluster SET first_hour = 1",
            "DROP TABLE \"claim_\(next)\"")
        let busy = try PostgreSQLConnection.open(fixture.address(), name: "test")
        _ = try busy.run(["BEGIN", "LOCK claim IN ROW EXCLUSIVE MODE"].map { Statement($0) })
        #expect(throws: StoreError.self) { try database.maintain(owner: first, epoch: 1) }
        #expect(try database.claimWindow().firstHour == 1)
        #expect(try fixture.count("\"claim_\(next)\"") == 0)
        busy.rollBack()
        #expect(try database.maintain(owner: first, epoch: 1))
        #expect(try database.claimWindow().firstHour == firstHour)
    }

    /// Lets the first node join and take a partition.
    private func own(_ partition: PartitionNumber, _ database: ClusterDatabase) throws -> ClusterView {
        let takes = [Heartbeat.Take(partition: partition, observedEpoch: 0)]
        return try database.heartbeat(Heartbeat(lease: LeaseRow(node: first), isFirst: true, ends: [], releases: [], takes: takes))
    }

    // MARK: Finished messages

    @Test("Finished rows are read after the last that was read, by pages; writing one again changes nothing")
    func finishedRows() throws {
        let fixture = try ClusterFixture()
        let (database, other) = (try fixture.prepared(), try fixture.database())
        for sequence in 1...300 as ClosedRange<Int64> {
            try database.write(FinishedLog.Row(node: first, sequence: sequence, prefixes: [UInt64(sequence), .max], deleteUpTo: 0))
        }
        try database.write(FinishedLog.Row(node: second, sequence: 1, prefixes: [7], deleteUpTo: 0))
        try database.write(FinishedLog.Row(node: second, sequence: 1, prefixes: [8], deleteUpTo: 0))
        var rows: [FinishedRow] = []
        var last: [NodeID: Int64] = [:]
        while case let page = try other.finishedRows(after: last, except: NodeID(rawValue: 5)), !page.isEmpty {
            #expect(page.count <= ClusterDatabase.finishedRowLimit)
            for row in page { last[row.node] = row.sequence }
            rows += page
        }
        #expect(rows.count == 301)
        #expect(rows.filter { $0.node == first }.map(\.sequence) == Array(1...300))
        #expect(rows.first { $0.node == first }?.prefixes == [1, .max])
        #expect(rows.first { $0.node == second }?.prefixes == [7])
        #expect(try other.finishedRows(after: [first: 299], except: second).map(\.sequence) == [300])
        #expect(try other.finishedRows(after: [:], except: first).map(\.node) == [second])
        try database.write(FinishedLog.Row(node: first, sequence: 301, prefixes: [], deleteUpTo: 299))
        #expect(try other.finishedRows(after: [:], except: second).map(\.sequence) == [300, 301])
    }

    @Test("Maintenance deletes ended leases after an hour, and old finished rows of nodes that are gone")
    func pruning() throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        _ = try own(256, database)
        for node in [second, NodeID(rawValue: 3), NodeID(rawValue: 4)] {
            _ = try database.heartbeat(Heartbeat(lease: LeaseRow(node: node), isFirst: true, ends: [], releases: [], takes: []))
        }
        for node in 1...5 as ClosedRange<UInt64> {
            try database.write(FinishedLog.Row(node: NodeID(rawValue: node), sequence: 1, prefixes: [], deleteUpTo: 0))
        }
        try fixture.run(
            "UPDATE cluster_finished SET written_at = now() - interval '2 minutes' WHERE node <> 4",
            "UPDATE cluster_node SET state = 'ended', ended_at = now() - interval '59 minutes' WHERE node IN (3, 4)",
            "UPDATE cluster_node SET state = 'ended', ended_at = now() - interval '61 minutes' WHERE node = -1")
        #expect(try database.maintain(owner: first, epoch: 1))
        #expect(try database.overview().nodes.map(\.id.rawValue).sorted() == [1, 3, 4])
        #expect(Set(try database.finishedRows(after: [:], except: second).map(\.node.rawValue)) == [1, 4])
    }

    @Test("The overview has every node, and counts partitions without an owner")
    func overview() throws {
        let fixture = try ClusterFixture()
        #expect(throws: StoreError.self) { try fixture.database().overview() }
        let database = try fixture.prepared()
        _ = try own(256, database)
        // Renewed for a day, so that a slow machine does not end the lease.
        try fixture.run("UPDATE cluster_node SET renewed_at = now() + interval '1 day', name = 'push1'")
        var overview = try database.overview()
        #expect(overview.nodes.count == 1)
        let node = try #require(overview.nodes.first)
        #expect(node.id == first && node.name == "push1" && node.state == .live && node.version == "1.2" && node.hashingVersion == 1)
        #expect(node.stateName == "live" && node.partitionCount == 0 && node.isMaintainer && overview.hasMaintainer)
        #expect(overview.unownedPartitionCount == 256)
        try fixture.run("UPDATE cluster_node SET state = 'draining'")
        #expect(try database.overview().nodes.map(\.stateName) == ["draining"])
        try fixture.run("UPDATE cluster_node SET settings = E'--identity=a\\nclock=off'")
        #expect(try database.overview().nodes.map(\.stateName) == ["clock off"])
        try fixture.run("UPDATE cluster_node SET state = 'ended'")
        overview = try database.overview()
        #expect(overview.nodes.first?.state == .ended && overview.unownedPartitionCount == 256)
        #expect(!overview.hasMaintainer)
        // As a release without the column has made it, and no node of this one has changed it.
        try fixture.run("ALTER TABLE cluster_node DROP COLUMN settings")
        #expect(try database.overview().nodes.map(\.stateName) == ["ended"])
    }

    @Test("A lease that is over and that no other node has ended is not renewed, and its partitions have no owner")
    func overviewOfKilledNodes() throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        _ = try own(256, database)
        try fixture.run(
            "UPDATE cluster_node SET renewed_at = now() + interval '1 day'",
            "UPDATE cluster_partition SET owner = (SELECT node FROM cluster_node) WHERE partition < 100")
        let running = try database.overview()
        #expect(running.nodes.map(\.stateName) == ["live"] && running.unownedPartitionCount == 156)
        try fixture.run("UPDATE cluster_node SET renewed_at = now() - interval '90 seconds'")
        let killed = try database.overview()
        let node = try #require(killed.nodes.first)
        #expect(node.stateName == "not renewed" && node.state == .live && node.partitionCount == 100)
        #expect((90..<120).contains(node.secondsSinceRenewal))
        #expect(!node.isMaintainer && !killed.hasMaintainer && killed.unownedPartitionCount == 256)
        // One that stopped stays ended.
        try fixture.run("UPDATE cluster_node SET state = 'ended'")
        #expect(try database.overview().nodes.map(\.stateName) == ["ended"])
    }

    @Test("Of the former processes of a name, the latest is listed, and none while the name has a lease")
    func formerProcesses() throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        for node in 1...6 as ClosedRange<UInt64> {
            let lease = LeaseRow(node: NodeID(rawValue: node))
            _ = try database.heartbeat(Heartbeat(lease: lease, isFirst: true, ends: [], releases: [], takes: []))
        }
        // Ids are random, so the latest of push2 has neither the first nor the last one.
        try fixture.run(
            "UPDATE cluster_node SET name = 'push1' WHERE node <= 3", "UPDATE cluster_node SET name = 'push2' WHERE node > 3",
            "UPDATE cluster_node SET state = 'ended' WHERE node <> 2",
            "UPDATE cluster_node SET renewed_at = now() - interval '1 minute' * CASE node WHEN 5 THEN 3 ELSE 9 END WHERE node > 3",
            "UPDATE cluster_node SET renewed_at = now() - interval '20 minutes' WHERE node = 2")
        let overview = try database.overview()
        #expect(overview.nodes.count == 6)
        #expect(overview.latestNodes.map(\.id.rawValue) == [2, 5])
    }

    @Test("Nodes with another number of partitions are refused, and preparing again changes nothing")
    func otherPartitions() throws {
        let fixture = try ClusterFixture()
        try fixture.prepared().prepare(notices: [])
        var configuration = ClusterConfiguration()
        configuration.partitionCount = 512
        let other = try fixture.database(configuration: configuration)
        #expect { try other.prepare(notices: []) } throws: { ($0 as? StoreError)?.code == .unsuitable }
        #expect(try fixture.count("cluster_partition") == 257)
    }
}
