import Cluster
import Delivery
import NodeAPI
import NodeAssembly
import NodeMetrics
import StatusServer
import Storage
import StorePostgreSQL
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode

/// A database that hangs: requests are answered by the deadline, and their effect takes place once, when the database goes on.
@Suite("PostgreSQL that hangs", .timeLimit(.minutes(10))) struct HangingPostgreSQLTests {
    private static let requestCount = 30
    /// Far above the deadline, so that a busy machine does not fail the test.
    private static let limit = Duration.seconds(20)

    private func configure(_ configuration: inout ServerConfiguration) {
        configuration.awaitLimit = .seconds(2)
        configuration.cluster?.times.lease = .seconds(5)
    }

    /// Requests during a hang, and their outcomes.
    private func check(
        _ fixture: ClusterFixture, _ members: [ClusterFixture.Member], begin: @Sendable () async throws -> Void,
        end: @Sendable () async throws -> Void, during: @Sendable ([ClusterFixture.Member]) async throws -> Void = { _ in }
    ) async throws {
        let clients = (0..<Self.requestCount).map { _ in TestClient(of: fixture.identity.publicKey) }
        await members.feed(clients.flatMap { fixture.registration($0) })
        try await members.wait { $0.count(.registrationStored) == Self.requestCount }
        try await members.wait { $0.published.count >= Self.requestCount }
        let before = members.published.count
        try await begin()
        let start = ContinuousClock.now
        await members.feed(clients.enumerated().flatMap { fixture.request($1, id: "\($0)") })
        try await members.wait { $0.count(.requestAnswered) >= Self.requestCount }
        #expect(start.duration(to: .now) < Self.limit)
        #expect(start.duration(to: .now) > .seconds(2))
        try await members.wait { $0.published.count >= before + Self.requestCount }
        try await during(members)
        try await end()
        try await members.wait { _ in fixture.gorush.accepted.count >= Self.requestCount }
        try await members.wait { $0.allSatisfy { $0.fed.node.delivery.waitingCount == 0 && $0.fed.node.store.failure == nil } }
        #expect(fixture.gorush.accepted.count == Self.requestCount)
        // A node answers once. Of several, one that could not tell that another had taken a message may answer it too.
        if members.count == 1 { #expect(members.published.count == before + Self.requestCount) }
    }

    @Test("Connections that pass no data", arguments: [["a", "b", "c"], ["a"]])
    func silence(names: [String]) async throws {
        let server = try PostgreSQLServer.shared()
        let name = try await server.makeDatabase().split(separator: " ").first { $0.hasPrefix("dbname=") }
        let proxy = try PostgreSQLProxy(server)
        let fixture = ClusterFixture(address: try PostgreSQLAddress("host=\(proxy.path) \(try #require(name)) user=postgres"))
        try await fixture.withNodes(names, configure: configure) { members in
            try await members.waitUntilShared()
            try await check(fixture, members) {
                proxy.inspect { _, _ in .hold }
            } end: {
                proxy.inspect { _, _ in .pass }
                proxy.cutAll()
            }
        }
    }

    @Test("Without its standby, commits hang, and only store and cluster are reported as failing", arguments: [["a", "b"], ["a"]])
    func standbyAway(names: [String]) async throws {
        let server = try PostgreSQLServer()
        let fixture = ClusterFixture(address: try PostgreSQLAddress("host=\(server.folder) dbname=postgres user=postgres"))
        try await fixture.withNodes(names, configure: configure) { members in
            try await members.waitUntilShared()
            try await check(fixture, members) {
                try await server.run("ALTER SYSTEM SET synchronous_standby_names = 'away'", "SELECT pg_reload_conf()")
            } end: {
                try await server.run("ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")
            } during: { members in
                try await members.wait { $0.allSatisfy { $0.fed.node.obstacles.count >= 2 } }
                for member in members {
                    let findings = member.fed.node.findings
                    #expect(findings.first { $0.check == "store" }?.text.hasPrefix("PostgreSQL has not answered for") == true)
                    #expect(findings.first { $0.check == "cluster" }?.text.contains("nothing is posted until it is") == true)
                    #expect(findings.filter { $0.verdict == .fail }.map(\.check) == ["store", "cluster"])
                    #expect(findings.first { $0.check == "gorush" }?.verdict == .ok)
                    #expect(!member.fed.node.base.alarms.isActive(.gorushSlow))
                }
            }
        }
    }

    @Test("A node alone answers by the deadline too")
    func alone() async throws {
        let server = try PostgreSQLServer()
        let fixture = ClusterFixture(address: try PostgreSQLAddress("host=\(server.folder) dbname=postgres user=postgres"))
        let alone = { @Sendable (configuration: inout ServerConfiguration) in
            configuration.cluster = nil
            configuration.awaitLimit = .seconds(2)
        }
        try await fixture.withNodes(["a"], configure: alone) { members in
            try await check(fixture, members) {
                try await server.run("ALTER SYSTEM SET synchronous_standby_names = 'away'", "SELECT pg_reload_conf()")
            } end: {
                try await server.run("ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")
            }
        }
    }
}
