import Core
import Foundation
import LoopbackRelay
import LoopbackServer
import NwakuRelay
import TestSupport
import Testing
import Waku
import WakuCrypto

/// A node takes over from a server of status-go that was ended by a signal, at a Waku node with a store: requests that the server
/// handled are not notified again, and later ones are.
@Suite(.timeLimit(.minutes(5)))
struct TakeOverTests {
    struct Setup: Sendable, CustomTestStringConvertible {
        let engine: StatusGoFixture.Engine
        /// Whether the database has the time of the last handled message.
        let hasTimes: Bool
        let inPostgreSQL: Bool

        var testDescription: String { "\(engine), times \(hasTimes), PostgreSQL \(inPostgreSQL)" }
    }

    @Test(
        arguments: [
            Setup(engine: .statusGo, hasTimes: true, inPostgreSQL: false), Setup(engine: .python, hasTimes: true, inPostgreSQL: true),
            Setup(engine: .python, hasTimes: false, inPostgreSQL: false),
        ])
    func neitherGapNorDoubles(_ setup: Setup) async throws {
        let (node, clients) = (try OperatedNode(), RecordedClients())
        defer { node.gorush.stop() }
        // A store that accepts old messages.
        let (network, port) = (LoopbackNetwork(archiveClockTolerance: .seconds(3600)), try freePort())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await LoopbackServer(network: network, port: Int(port)).run() }
            defer { group.cancelAll() }
            try await takeOver(setup, node, clients, at: "http://127.0.0.1:\(port)")
        }
    }

    private func takeOver(_ setup: Setup, _ node: OperatedNode, _ clients: RecordedClients, at relay: String) async throws {
        let api = try clients.api(relay)
        try await eventually { (try? await api.query(StoreQuery(pubsubTopic: .statusDefault))) != nil }
        // The server ended two minutes ago, after the first request came, and before the second.
        let (handled, missed) = (try clients.flow("req_message_apn"), try clients.flow("req_message_firebase"))
        let ended = Timestamp.now() - .seconds(120)
        let request = try #require(handled.wireIn.first)
        try await clients.send(request, at: ended - .seconds(5), api)
        try await clients.send(#require(missed.wireIn.first), at: ended + .seconds(2), api)
        let database = node.folder.path + "/pushserver.db"
        let sql =
            try StatusGoFixture.rows(after: missed.name).map(StatusGoFixture.row).joined()
            + StatusGoFixture.identity(clients.vectors.pair("server"))
            + StatusGoFixture.handled(#require(request.applicationMetadata?.messageId?.bytes))
            + (setup.hasTimes ? StatusGoFixture.message(at: ended.rawValue / 1_000_000) : "")
        try await StatusGoFixture.kill(
            setup.engine, [StatusGoFixture.emptyConfiguration, "PRAGMA wal_checkpoint;\n", sql], at: database)
        // As by a checkpoint.
        for file in [database, database + "-wal"] {
            try FileManager.default.setAttributes([.modificationDate: Date.now], ofItemAtPath: file)
        }

        try write(StatusGoFixture.password, to: node.folder.path + "/password")
        let identity = node.folder.path + "/imported.key"
        let store = setup.inPostgreSQL ? ["--store", try await PostgreSQLServer.shared().makeDatabase()] : []
        let imported = try await run(
            [
                "admin", "import", "status-go", database, "--data", node.data, "--identity", identity, "--password-file",
                node.folder.path + "/password", "--default-apn-topic", "im.status.ethereum", "--skip",
            ] + store)
        try #require(imported.status == 0, "\(imported.errors)")
        let daemon = try await Daemon.start(
            ["--identity", identity, "--data", node.data, "--gorush", node.gorush.url, "--relay", relay] + store)

        // The request that was handled is answered again, as the server did it.
        for flow in [handled, missed] {
            let recorded = try #require(flow.wireOut?.first)
            let answer = try #require(recorded.applicationMetadata?.payload?.bytes)
            try await eventually { try await clients.answers(like: recorded, api).contains(answer) }
        }
        // Ending, the node posts what it accepted.
        #expect(await daemon.stop().status == 0)
        #expect(try node.gorush.posted == PostedEntry.list((missed.gorush ?? []).map { Array($0.body.utf8) }))
    }
}
