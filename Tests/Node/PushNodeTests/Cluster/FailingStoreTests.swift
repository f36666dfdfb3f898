import Cluster
import Core
import NodeAPI
import NodeAssembly
import NodeMetrics
import StatusServer
import Storage
import StorePostgreSQL
import Synchronization
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode

@Suite("One of several nodes whose store fails", .timeLimit(.minutes(10))) struct FailingStoreTests {
    /// As when the server refuses further connections after a restart: those of heartbeats were there first.
    @Test(
        "A node that renews its lease, and can't write or read the outbox, leaves its share to others until it can",
        arguments: [("store_writer", "store: "), (#"SELECT id FROM "outbox""#, "cluster: the outbox can't be read")])
    func failingStore(statement: String, obstacle: String) async throws {
        let server = try PostgreSQLServer.shared()
        let text = try await server.makeDatabase()
        let fixture = ClusterFixture(address: try PostgreSQLAddress(text))
        let proxy = try PostgreSQLProxy(server)
        let name = try #require(text.split(separator: " ").first { $0.hasPrefix("dbname=") })
        let own = try PostgreSQLAddress("host=\(proxy.path) \(name) user=postgres")
        let clients = (0..<20).map { _ in TestClient(of: fixture.identity.publicKey) }
        let calls = Mutex(0)
        func configure(_ configuration: inout ServerConfiguration) {
            let isSecond = calls.withLock { calls in
                calls += 1
                return calls == 2
            }
            if isSecond { configuration.store = .postgreSQL(own) }
            configuration.cluster?.times.lease = .seconds(5)
            // A slow node keeps its messages.
            configuration.cluster?.times.rankDelay = .seconds(120)
        }
        try await fixture.withNodes(["a", "b"], configure: configure) { members in
            try await members.waitUntilShared()
            let statement = Array(statement.utf8)
            proxy.inspect { direction, bytes in
                let isRefused = direction == .toServer && bytes.indices.contains { bytes[$0...].starts(with: statement) }
                return isRefused ? .cut : .pass
            }
            proxy.cutAll()
            try await members.wait { $0[0].fed.node.cluster.share == 256 && $0[1].fed.node.cluster.share == 0 }
            try await members.wait { $0[0].fed.node.cluster.nodeCount == 1 }
            try await members.wait { $0[0].fed.node.cluster.status?.nodes.map(\.state) == ["live", "store failing"] }
            #expect(members[1].fed.node.obstacles.contains { $0.hasPrefix(obstacle) })
            await members.feed(clients.flatMap { fixture.registration($0) })
            try await members.wait { $0[0].fed.count(.registrationStored) == 20 }

            proxy.inspect { _, _ in .pass }
            try await members.waitUntilShared()
            try await members.wait { $0[0].fed.node.cluster.status?.nodes.map(\.state) == ["live", "live"] }
        }
    }

    @Test("Logged changes that can't be read are in the log")
    func unreadableChanges() async throws {
        let (fixture, log) = (try await ClusterFixture(), RecordedLog())
        try await fixture.withNodes(["a"], configure: { $0.cluster?.times.changeInterval = .milliseconds(50) }, log: log) { members in
            let connection = try PostgreSQLConnection.open(fixture.address, name: "test")
            _ = try connection.run(Statement("DROP TABLE cluster_change", isPrepared: false))
            try await members.wait { _ in log.contains("failed to read logged changes") }
        }
    }

    @Test("A node that read an altered row, which no node can read, keeps its share")
    func alteredRow() async throws {
        let fixture = try await ClusterFixture()
        try await fixture.withNodes(["a", "b"], configure: { $0.cluster?.times.lease = .seconds(5) }) { members in
            try await members.waitUntilShared()
            let client = TestClient(of: fixture.identity.publicKey)
            await members.feed(fixture.registration(client))
            try await members.wait { $0.count(.registrationStored) == 1 }
            let connection = try PostgreSQLConnection.open(fixture.address, name: "test")
            func run(_ sql: String) throws -> Int64? { try connection.run(Statement(sql, isPrepared: false)).rows.first?.integer(0) }
            _ = try run("UPDATE registration SET sealed = '\\x00'")
            await members.feed(fixture.request(client, id: "message"))
            try await members.wait { members in
                members.contains { $0.fed.node.obstacles.contains { $0.hasPrefix("store: a row of PostgreSQL") } }
            }
            // More than two leases.
            let renewals = "SELECT min(renewals) FROM cluster_node"
            let before = try run(renewals) ?? 0
            try await eventually { try run(renewals) ?? 0 > before + 12 }
            #expect(members.contains { $0.fed.node.obstacles.contains { $0.hasPrefix("store: a row of PostgreSQL") } })
            #expect(members[0].fed.node.cluster.status?.nodes.map(\.state) == ["live", "live"])
            #expect(members.map(\.fed.node.cluster.share).reduce(0, +) == 256)
        }
    }
}
