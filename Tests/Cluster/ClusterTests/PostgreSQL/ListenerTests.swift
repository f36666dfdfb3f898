@testable import Cluster
import Foundation
import Storage
import StorePostgreSQL
import TestSupport
import Testing

@Suite("Notifications between nodes", .timeLimit(.minutes(5)))
struct ListenerTests {
    private static let rows = Notice(channel: "rows", table: ClusterFixture.outbox, column: .id)
    private static let payloads = Notice(
        channel: "payloads", table: ClusterFixture.outbox, column: ClusterFixture.payload, includesUpdates: true)

    /// Notifications until there are so many of a channel.
    private func payloads(_ channel: String, _ count: Int, _ listener: ClusterListener) throws -> [String] {
        var payloads: [String] = []
        let deadline = ContinuousClock.now + .seconds(60) * TestTimeout.factor
        while payloads.count < count, .now < deadline {
            if case .notified(let received) = try listener.next(timeout: .seconds(1)) { payloads += received[channel] ?? [] }
        }
        return payloads
    }

    @Test("Inserted rows, and updated ones if requested, are notified in their order")
    func notices() async throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared(notices: [Self.rows, Self.payloads])
        let listener = database.listener(on: ["rows", "payloads"])
        #expect(try listener.next(timeout: .zero) == .reconnected)
        let began = ContinuousClock.now
        #expect(try listener.next(timeout: .milliseconds(20)) == .notified([:]))
        #expect(ContinuousClock.now - began >= .milliseconds(20))
        let ids = try await fixture.enqueue(7, 8)
        #expect(try payloads("rows", 2, listener) == ids.map { "\($0)" })
        let both = database.listener(on: ["payloads"])
        #expect(try both.next(timeout: .zero) == .reconnected)
        try fixture.run(
            "UPDATE outbox SET payload = '\\xff' WHERE id = \(ids[1])", "INSERT INTO outbox (device, payload) VALUES (1, '\\x00')")
        #expect(try payloads("payloads", 2, both) == ["ff", "00"])
    }

    @Test("Logged changes can be read after their notification")
    func logged() async throws {
        let fixture = try ClusterFixture()
        let logged = Notice(
            channel: "payloads", table: ClusterFixture.outbox, column: ClusterFixture.payload, includesUpdates: true, isLogged: true)
        let database = try fixture.prepared(notices: [Self.rows, logged])
        #expect(try database.changes(since: nil).payloads == [:])
        try await fixture.enqueue(7, 8)
        let first = try database.changes(since: nil)
        // Both have the same payload.
        #expect(first.payloads == ["payloads": ["0102"]] && first.next == nil)
        try fixture.run("UPDATE outbox SET payload = '\\xff'")
        #expect(try database.changes(since: first.readAt).payloads == ["payloads": ["ff"]])
        #expect(Set(try database.changes(since: nil).payloads["payloads"] ?? []) == ["0102", "ff"])
        // Old ones are not kept.
        try fixture.run("UPDATE cluster_change SET at = at - interval '11 minutes' WHERE payload = '0102'")
        try fixture.run("UPDATE cluster_partition SET owner = 5, epoch = 1 WHERE partition = \(fixture.configuration.maintenancePartition)")
        #expect(try database.maintain(owner: NodeID(rawValue: 5), epoch: 1))
        #expect(try database.changes(since: nil).payloads == ["payloads": ["ff"]])
        // More changes than the limit are read in parts.
        try fixture.run("INSERT INTO cluster_change (channel, payload) SELECT chr(97 + n % 2), n FROM generate_series(1, 5) n")
        var (parts, place) = ([[String: [String]]](), LoggedChanges.Place?.none)
        repeat {
            let part = try database.changes(since: first.readAt, after: place, limit: 4)
            parts.append(part.payloads)
            place = part.next
        } while place != nil
        #expect(parts == [["a": ["2", "4"], "b": ["1", "3"]], ["b": ["5"], "payloads": ["ff"]]])
    }

    @Test("A node that has the database for itself ends the notifications, until several nodes prepare it again")
    func withdrawal() async throws {
        let fixture = try ClusterFixture()
        let logged = Notice(
            channel: "payloads", table: ClusterFixture.outbox, column: ClusterFixture.payload, includesUpdates: true, isLogged: true)
        try ClusterDatabase.leaveCluster(at: fixture.address(), outbox: ClusterFixture.shared)
        let database = try fixture.prepared(notices: [Self.rows, logged])
        try await fixture.enqueue(7)
        #expect(try fixture.count("cluster_change") == 1)
        try ClusterDatabase.leaveCluster(at: fixture.address(), outbox: ClusterFixture.shared)
        try await fixture.enqueue(8)
        #expect(try fixture.count("cluster_change") == 0)
        try database.prepare(notices: [Self.rows, logged])
        try await fixture.enqueue(9)
        #expect(try fixture.count("cluster_change") == 1)
    }

    @Test("A channel's definition is replaced")
    func replacement() async throws {
        let fixture = try ClusterFixture()
        let database = try fixture.prepared(notices: [Self.rows])
        try database.prepare(notices: [Self.rows])
        let notice = Notice(channel: "rows", table: ClusterFixture.outbox, column: ClusterFixture.device, includesUpdates: true)
        try database.prepare(notices: [notice])
        let listener = database.listener(on: ["rows"])
        #expect(try listener.next(timeout: .zero) == .reconnected)
        try await fixture.enqueue(7)
        try fixture.run("UPDATE outbox SET device = 8")
        #expect(try payloads("rows", 2, listener) == ["7", "8"])
    }

    @Test("Nodes of another schema get no notifications")
    func schemas() async throws {
        let (fixture, other) = (try ClusterFixture(), try ClusterFixture())
        let listeners = try [fixture, other].map { try $0.prepared(notices: [Self.rows]).listener(on: ["rows"]) }
        for listener in listeners { #expect(try listener.next(timeout: .zero) == .reconnected) }
        try await fixture.enqueue(1)
        let ids = try await other.enqueue(1, 2)
        #expect(try payloads("rows", 1, listeners[0]) == ["1"])
        #expect(try payloads("rows", 2, listeners[1]) == ids.map { "\($0)" })
        #expect(try listeners[0].next(timeout: .zero) == .notified([:]))
    }

    @Test("A lost connection is replaced and reported")
    func reconnection() async throws {
        let fixture = try ClusterFixture()
        let proxy = try PostgreSQLProxy(fixture.server)
        let listener = try fixture.prepared(host: proxy.path, notices: [Self.rows]).listener(on: ["rows"])
        #expect(try listener.next(timeout: .zero) == .reconnected)
        proxy.cutAll()
        try await fixture.enqueue(1)
        #expect(try listener.next(timeout: .seconds(60)) == .reconnected)
        let ids = try await fixture.enqueue(2)
        #expect(try payloads("rows", 1, listener) == ids.map { "\($0)" })
        // While it can't connect, it throws.
        proxy.inspect { _, _ in .cut }
        proxy.cutAll()
        #expect(throws: StoreError.self) { try listener.next(timeout: .seconds(60)) }
        proxy.inspect { _, _ in .pass }
        #expect(try listener.next(timeout: .zero) == .reconnected)
    }

    @Test(
        "A listener that is not read is ended, so that PostgreSQL need not keep notifications for it",
        arguments: [1, 1000])
    func unread(transactions: Int) async throws {
        let configuration = ClusterConfiguration()
        let fixture = try ClusterFixture(PostgreSQLServer())
        let listener = try fixture.prepared().listener(on: ["rows"])
        #expect(try listener.next(timeout: .zero) == .reconnected)
        let owner = NodeID(rawValue: 5)
        try fixture.run("UPDATE cluster_partition SET owner = 5, epoch = 1 WHERE partition = \(configuration.maintenancePartition)")
        // More than the buffers of both sockets take. In one transaction the session blocks within one of its own, else after it.
        let session = try PostgreSQLConnection.open(fixture.address(), name: "test")
        let payloads = "FROM generate_series(1, \(1000 / transactions)) AS n"
        let notify = "SELECT pg_notify('rows_' || \(ClusterDatabase.schemaID), n || ' ' || repeat('x', 7000)) " + payloads
        for _ in 0..<transactions { _ = try session.run([Statement(notify, isPrepared: false)]) }
        let database = try fixture.database()
        let listeners = "pg_stat_activity WHERE application_name = 'waku-push listener'"
        try await eventually { try fixture.count(listeners + " AND wait_event = 'ClientWrite'") == 1 }
        #expect(try database.maintain(owner: owner, epoch: 1))
        #expect(try fixture.count(listeners) == 1)
        #expect(try fixture.count("pg_notification_queue_usage() AS usage WHERE usage > 0") == 1)
        #expect(try database.maintain(owner: owner, epoch: 1))
        try await eventually { try fixture.count(listeners) == 0 }
        #expect(try fixture.count("pg_notification_queue_usage() AS usage WHERE usage > 0") == 0)
        try await eventually { try listener.next(timeout: .zero) == .reconnected }
    }

    @Test("Closing ends waiting at once")
    func closing() async throws {
        let fixture = try ClusterFixture()
        let listener = try fixture.prepared().listener(on: ["rows"])
        #expect(try listener.next(timeout: .zero) == .reconnected)
        let events = AsyncStream<ClusterListener.Event?>.makeStream()
        Thread.detachNewThread {
            events.continuation.yield(try? listener.next(timeout: .seconds(600)))
            events.continuation.finish()
        }
        listener.close()
        for await event in events.stream { #expect(event == .closed) }
        #expect(try listener.next(timeout: .seconds(600)) == .closed)
    }
}
