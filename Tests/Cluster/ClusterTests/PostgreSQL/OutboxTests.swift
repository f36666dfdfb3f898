@testable import Cluster
import Storage
import StorePostgreSQL
import Synchronization
import TestSupport
import Testing

@Suite("Several nodes, PostgreSQL: outbox", .timeLimit(.minutes(5))) struct OutboxTests {
    private static let findAccepted = Query(ClusterFixture.accepted, [.id], where: [.equal(ClusterFixture.delivery)])
    private static let enqueue = Storage.Mutation(
        ClusterFixture.outbox, .insert([ClusterFixture.device, ClusterFixture.payload, ClusterFixture.delivery]))

    @Test("A delivery is not enqueued if another node had it accepted after this node read the rows")
    func once() async throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        defer { database.close() }
        let looks = Mutex(0)
        let wasAccepted = try await fixture.store.commit(
            StoreCommand<Bool>.find(Self.findAccepted(.bytes([7]))) { rows in
                let isFirst = looks.withLock { looks in
                    looks += 1
                    return looks == 1
                }
                // Between this node's read and its change.
                if isFirst { try fixture.run("INSERT INTO accepted (delivery) VALUES ('\\x07')") }
                guard rows.isEmpty else { return .done(true) }
                return .change([Self.enqueue(.integer(1), .bytes([1]), .bytes([7]))], false)
            })
        #expect(wasAccepted && looks.withLock(\.self) == 2)
        #expect(try fixture.count("outbox") == 0)
    }

    @Test("Rows are read with their marks, in the order of their ids; those that are gone are left out")
    func waiting() async throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        defer { database.close() }
        let ids = try await fixture.enqueue(7, 8, 9)
        try await fixture.store.commit(
            StoreCommand<Void>.change([ClusterFixture.mark(.integer(ids[1]), .integer(-1), .integer(3))]))
        let found = try database.waiting([ids[2], ids[1], ids[0], 4711], columns: [.id, ClusterFixture.device]) { row, mark in
            try row.integer(1) == 9 ? nil : (id: try row.integer(0), device: try row.integer(1), mark: mark?.mark)
        }
        #expect(found.map(\.id) == [ids[0], ids[1]] && found.map(\.device) == [7, 8])
        #expect(found.map(\.mark) == [nil, DeliveryMark(owner: NodeID(rawValue: .max), epoch: 3)])
    }

    @Test("Waiting rows are counted by the node that has them")
    func waitingCounts() async throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        defer { database.close() }
        let ids = try await fixture.enqueue(7, 7, 8, 9)
        let takes = [7, 8].map { Heartbeat.Take(partition: $0, observedEpoch: 0) }
        let lease = LeaseRow(node: NodeID(rawValue: 1), name: "node-1")
        _ = try database.heartbeat(Heartbeat(lease: lease, isFirst: true, ends: [], releases: [], takes: takes))
        #expect(try database.waitingCounts(among: nil) == ["node-1": 3])
        #expect(try database.waitingCounts(among: [ids[0], ids[3]]) == ["node-1": 1])
        #expect(try database.waitingCounts(among: []).isEmpty)
        try fixture.run("UPDATE cluster_node SET state = 'ended'")
        #expect(try database.waitingCounts(among: nil).isEmpty)
    }

    @Test("The time of the first mark stays: when another owner marks the row, and when one node has the database for itself in between")
    func firstMarks() async throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        defer { database.close() }
        let ids = try await fixture.enqueue(7, 8)
        try fixture.run(
            "INSERT INTO cluster_mark (row_id, node, epoch, marked_at) VALUES (\(ids[0]), 1, 1, now() - interval '100 s')")
        func ages(_ database: ClusterDatabase) throws -> [(mark: DeliveryMark, age: Duration)?] {
            try database.waiting(ids, columns: [.id]) { _, mark in (id: 0, mark: mark) }.map(\.mark)
        }
        let age = try #require(try ages(database)[0]?.age)
        #expect(age >= .seconds(100) && age < .seconds(160))
        #expect(try ages(database)[1] == nil)

        try ClusterDatabase.leaveCluster(at: fixture.address(), outbox: ClusterFixture.shared)
        #expect(try fixture.count("cluster_mark") == 0)
        #expect(try fixture.count("outbox WHERE marked_at IS NOT NULL") == 1)
        try database.prepare(notices: [])
        #expect(try fixture.count("outbox WHERE marked_at IS NOT NULL") == 0)
        let again = try ages(database)
        #expect(again[0]?.mark == DeliveryMark(owner: NodeID(rawValue: 0), epoch: 0) && again[1] == nil)
        #expect(try #require(again[0]).age >= age && #require(again[0]).age < .seconds(160))
    }

    @Test("The accepted ones of several deliveries are found")
    func accepted() throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        defer { database.close() }
        try fixture.run("INSERT INTO accepted (delivery) VALUES ('\\x07'), ('\\x08')")
        #expect(try Set(database.accepted(among: [[7], [9], [8], []])) == [[7], [8]])
        #expect(try database.accepted(among: []).isEmpty)
    }

    @Test("An insert that waits for the lock of another node sees the acceptance which that node commits")
    func lookAfterWaiting() async throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        defer { database.close() }
        try fixture.run("INSERT INTO outbox (device, payload, delivery) VALUES (1, '\\x01', '\\x07')")
        let other = try PostgreSQLConnection.open(fixture.address(), name: "test")
        for sql in ["BEGIN", "DELETE FROM outbox", "INSERT INTO accepted (delivery) VALUES ('\\x07')"] {
            _ = try other.run(Statement(sql, isPrepared: false))
        }
        async let result: Void = fixture.store.commit(
            StoreCommand<Void>.find(Self.findAccepted(.bytes([7]))) { rows in
                rows.isEmpty ? .change([Self.enqueue(.integer(1), .bytes([1]), .bytes([7]))]) : .change([])
            })
        try await eventually {
            try fixture.count("pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO%outbox%'") != 0
        }
        _ = try other.run(Statement("COMMIT", isPrepared: false))
        try await result
        #expect(try fixture.count("outbox") == 0)
    }
}
