import Foundation
import NodeAPI
import Storage
import StorePostgreSQL
import Synchronization
import TestSupport
import Testing

@testable import Cluster

@Suite("A cluster whose database fails", .timeLimit(.minutes(5)))
struct ClusterFaultTests {
    private static let first = NodeID(rawValue: 1)

    private func beat(isFirst: Bool = false, _ takes: Heartbeat.Take...) -> Heartbeat {
        Heartbeat(lease: LeaseRow(node: Self.first), isFirst: isFirst, ends: [], releases: [], takes: takes)
    }

    /// Cuts the next passage of a text.
    private func cut(_ text: String, _ wanted: PostgreSQLProxy.Direction, in proxy: PostgreSQLProxy) {
        let isDone = Mutex(false)
        let text = Array(text.utf8)
        proxy.inspect { direction, bytes in
            guard direction == wanted, bytes.indices.contains(where: { bytes[$0...].starts(with: text) }) else { return .pass }
            return isDone.withLock { isDone in
                defer { isDone = true }
                return isDone ? .pass : .cut
            }
        }
    }

    @Test(
        "A heartbeat whose COMMIT got no reply fails, whether or not it was committed",
        arguments: [PostgreSQLProxy.Direction.toClient, .toServer])
    func unknownOutcome(direction: PostgreSQLProxy.Direction) throws {
        let fixture = try ClusterFixture()
        let proxy = try PostgreSQLProxy(fixture.server)
        _ = try fixture.prepared().heartbeat(beat(isFirst: true))
        let database = try fixture.database(host: proxy.path)
        cut("COMMIT\0", direction, in: proxy)
        #expect(throws: StoreError.self) {
            try database.heartbeat(beat(Heartbeat.Take(partition: 0, observedEpoch: 0)))
        }
        let view = try database.heartbeat(beat())
        let isCommitted = direction == .toClient
        #expect(view.leases.map(\.renewals) == [isCommitted ? 3 : 2])
        #expect(view.partitions[0] == (isCommitted ? PartitionRow(owner: Self.first, epoch: 1) : PartitionRow()))
    }

    /// The first host accepts connections, and does not answer.
    @Test("A node that joins reads although connecting took longer than its time limit")
    func lateConnection() throws {
        let fixture = try ClusterFixture()
        let proxy = try PostgreSQLProxy(fixture.server)
        proxy.inspect { _, _ in .hold }
        var configuration = ClusterConfiguration()
        configuration.lease = configuration.leaseMargin + .milliseconds(300)
        let database = try fixture.database(
            host: "\(proxy.path),\(fixture.server.folder) connect_timeout=1", configuration: configuration)
        #expect(try database.now() > 0)
    }

    @Test("A connection that was lost before is replaced, and a heartbeat counts once")
    func lostConnection() throws {
        let fixture = try ClusterFixture()
        let proxy = try PostgreSQLProxy(fixture.server)
        let database = try fixture.prepared(host: proxy.path)
        for renewals in 1...3 as ClosedRange<UInt64> {
            #expect(try database.heartbeat(beat(isFirst: renewals == 1)).leases.map(\.renewals) == [renewals])
            #expect(try database.claims([(1, MessageKey(prefix: 1))]).isEmpty)
            proxy.cutAll()
        }
        cut("UPDATE 1\0", .toClient, in: proxy)
        #expect(try database.heartbeat(beat()).leases.map(\.renewals) == [4])
    }

    @Test("A heartbeat that has to wait is given up within its time")
    func waiting() throws {
        var configuration = ClusterConfiguration()
        (configuration.lease, configuration.leaseMargin) = (.milliseconds(1200), .milliseconds(200))
        let fixture = try ClusterFixture(configuration: configuration)
        let database = try fixture.prepared()
        _ = try database.heartbeat(beat(isFirst: true))
        let other = try PostgreSQLConnection.open(fixture.address(), name: "test")
        _ = try other.run(["BEGIN", "SELECT FROM cluster_node FOR UPDATE"].map { Statement($0) })
        #expect(throws: StoreError.self) { try database.heartbeat(beat()) }
        other.rollBack()
        #expect(try database.heartbeat(beat()).leases.map(\.renewals) == [2])
    }

    @Test("While a backup reads all tables, a node starts and others renew their leases; columns are only added after it")
    func backup() throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        _ = try database.heartbeat(beat(isFirst: true))
        let dump = try fixture.dump()
        try fixture.database().prepare(notices: [])
        #expect(try database.heartbeat(beat()).leases.map(\.renewals) == [2])
        dump.rollBack()

        // As a release without the column has made it.
        try fixture.run("ALTER TABLE cluster_node DROP COLUMN settings")
        let second = try fixture.dump()
        let error = #expect(throws: StoreError.self) { try fixture.database().prepare(notices: []) }
        #expect(error?.code == .locked)
        #expect(error?.message.contains("another session uses them: process \(second.backendID), pg_dump, role postgres") == true)
        second.rollBack()
        try fixture.database().prepare(notices: [])
        #expect(try database.heartbeat(beat()).leases.map(\.renewals) == [3])
    }

    @Test("While a backup reads all tables, a node that has the database for itself starts, unless several nodes left triggers")
    func backupOfSingleNode() async throws {
        let fixture = try ClusterFixture()
        func leave() throws { try ClusterDatabase.leaveCluster(at: fixture.address(), outbox: ClusterFixture.shared) }
        let notice = Notice(
            channel: "rows", table: ClusterFixture.outbox, column: ClusterFixture.device, includesUpdates: false, isLogged: true)
        try fixture.prepared(notices: [notice]).close()
        try await fixture.enqueue(7)
        let dump = try fixture.dump()
        let error = #expect(throws: StoreError.self) { try leave() }
        #expect(error?.code == .locked)
        #expect(error?.message.contains("process \(dump.backendID), pg_dump") == true)
        #expect(try fixture.count("cluster_change") == 1)
        dump.rollBack()
        try leave()
        #expect(try fixture.count("cluster_change") == 0)
        let second = try fixture.dump()
        try leave()
        second.rollBack()
    }

    @Test("A closed database is not opened again")
    func closed() throws {
        let database = try ClusterFixture().prepared()
        database.close()
        #expect(throws: StoreError.self) { try database.heartbeat(beat(isFirst: true)) }
        #expect(throws: StoreError.self) { try database.now() }
    }

    @Test("A commit that did not wait for the standby fails")
    func cancelledReplication() async throws {
        let server = try PostgreSQLServer()
        let fixture = try ClusterFixture(server)
        let database = try fixture.prepared()
        _ = try database.heartbeat(beat(isFirst: true))
        try await server.run("ALTER SYSTEM SET synchronous_standby_names = 'missing'", "SELECT pg_reload_conf()")
        let administrator = Task {
            // Until the standby is wanted no more.
            while !Task.isCancelled {
                try fixture.run("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        try await eventually {
            do {
                _ = try database.heartbeat(beat())
                return false
            } catch {
                return "\(error)".contains("did not wait for its standby")
            }
        }
        administrator.cancel()
        _ = try? await administrator.value
        try await server.run("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        try await eventually { (try? database.heartbeat(beat()).isMember) == true }
    }

    /// As the server warns when transaction ids run out, with each transaction that needs one.
    @Test("A warning before the commit does not count as a missing standby")
    func otherWarning() throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared()
        try fixture.run(
            "CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE WARNING ''10000000 left''; RETURN NULL; END'",
            "CREATE TRIGGER warn AFTER INSERT OR UPDATE ON cluster_node FOR EACH ROW EXECUTE FUNCTION warn()")
        #expect(try database.heartbeat(beat(isFirst: true)).isMember)
        #expect(try database.heartbeat(beat()).leases.map(\.renewals) == [2])
    }

    @Test("A former primary is passed over and refused")
    func formerPrimary() throws {
        let primary = try PostgreSQLServer()
        let fixture = try ClusterFixture(primary)
        try fixture.prepared().close()
        let standby = try PostgreSQLServer(standbyOf: primary)
        let database = try fixture.database(host: primary.folder + "," + standby.folder)
        _ = try database.heartbeat(beat(isFirst: true))
        try primary.kill()
        try standby.promote()
        #expect(try database.heartbeat(beat(isFirst: true)).isMember)

        try primary.start()
        // The old one comes first in the address, and is passed over.
        _ = try database.now()
        #expect(try database.heartbeat(beat()).isMember)
        try standby.stop()
        let refusal = #expect(throws: StoreError.self) { try database.now() }
        #expect(refusal?.message.contains("on \(primary.folder)) is a former primary") == true)
        #expect(refusal?.message.contains("on \(standby.folder)) can't be reached") == true)
    }

    @Test("A slot that no standby uses stands for a standby that is gone")
    func slotWithoutStandby() throws {
        let server = try PostgreSQLServer()
        let fixture = try ClusterFixture(server)
        let database = try fixture.prepared()
        #expect(try database.standbys() == [])
        try fixture.run("SELECT pg_create_physical_replication_slot('db_2', true)::text")
        // Without write-ahead log that is kept, the slot is not in use yet.
        try fixture.run("SELECT pg_create_physical_replication_slot('db_3')::text")
        try fixture.run("SELECT pg_logical_emit_message(true, '', '')::text")
        let standbys = try database.standbys()
        #expect(standbys.map(\.name) == ["db_2"] && standbys.first?.isConnected == false)
        #expect(standbys.first?.lagBytes ?? 0 > 0)
    }

    /// With the timeline that earlier releases stored.
    @Test("A database that was restored to another server after a failover is used there, once the node was restarted")
    func restoredElsewhere() async throws {
        let primary = try PostgreSQLServer()
        let fixture = try ClusterFixture(primary)
        try fixture.prepared().close()
        let standby = try PostgreSQLServer(standbyOf: primary)
        try primary.kill()
        try standby.promote()
        let other = try PostgreSQLServer()
        let hosts = standby.folder + "," + other.folder
        let running = try fixture.database(host: hosts)
        #expect(try running.heartbeat(beat(isFirst: true)).timeline == 2)
        try await standby.run("UPDATE \(fixture.schema).cluster SET timeline = 2")

        let folder = try TemporaryFolder()
        let dump = folder.path + "/dump"
        for (tool, options) in [
            ("pg_dump", ["--format=custom", "--schema=\(fixture.schema)", "--file=\(dump)", "--dbname=\(standby.address)"]),
            ("pg_restore", ["--exit-on-error", "--dbname=\(other.address)", dump]),
        ] {
            let ended = try await ExternalTool.run(tool, options)
            #expect(ended.status == 0, "\(ended.errors)")
        }
        try standby.stop()
        let refusal = #expect(throws: StoreError.self) { try running.heartbeat(beat()) }
        #expect(refusal?.message.contains("on \(other.folder)) can't be used: the server belongs to another PostgreSQL cluster") == true)
        let restarted = try fixture.database(host: hosts)
        try restarted.prepare(notices: [])
        #expect(try restarted.heartbeat(beat()).leases.map(\.renewals) == [2])
    }
}
