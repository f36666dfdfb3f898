import Foundation
import StatusProtocol
import TestSupport
import Testing
import Core
import WakuCrypto

/// A daemon that took over the database of a recorded push server of status-go answers what its clients sent as that server answered it.
@Suite(.timeLimit(.minutes(5)))
struct ImportedServerTests {
    private let node: OperatedNode
    private let database: String
    private let identity: String
    private let clients = RecordedClients()

    init() throws {
        node = try OperatedNode()
        database = node.folder.path + "/pushserver.db"
        identity = node.folder.path + "/imported.key"
    }

    /// Imports the recorded server's rows as they were after a flow, from files as a signal leaves them, and starts a node on them.
    private func takeOver(after flow: String, _ engine: StatusGoFixture.Engine = .statusGo) async throws -> Daemon {
        let rows = StatusGoFixture.rows(after: flow)
        try #require(!rows.isEmpty)
        let sql = rows.map(StatusGoFixture.row).joined() + StatusGoFixture.identity(try clients.vectors.pair("server"))
        try await StatusGoFixture.kill(engine, [StatusGoFixture.emptyConfiguration, "PRAGMA wal_checkpoint;\n", sql], at: database)
        try write(StatusGoFixture.password, to: node.folder.path + "/password")
        let imported = try await run(
            "admin", "import", "status-go", database, "--data", node.data, "--identity", identity, "--password-file",
            node.folder.path + "/password", "--default-apn-topic", "im.status.ethereum", "--skip")
        try #require(imported.status == 0, "\(imported.errors)")
        return try await Daemon.start(["--identity", identity, "--data", node.data, "--gorush", node.gorush.url])
    }

    /// Sends what the client of a recorded flow sent first.
    ///
    /// - Returns: The recorded answer, and the present one.
    private func exchange(_ name: String, with daemon: Daemon) async throws -> (recorded: StatusGoVectors.Message, answer: [UInt8]) {
        let api = try clients.api(daemon.relayURL)
        let flow = try clients.flow(name)
        let (sent, recorded) = (try #require(flow.wireIn.first), try #require(flow.wireOut?.first))
        try await clients.send(sent, at: .now(), api)
        return (recorded, try await clients.answer(like: recorded, api))
    }

    @Test(
        arguments: ["query_contacts_only_allowed", "query_contacts_only_not_allowed", "query_same_key_twice"],
        [StatusGoFixture.Engine.python, .statusGo])
    func recordedQueriesAreAnswered(_ name: String, by engine: StatusGoFixture.Engine) async throws {
        defer { node.gorush.stop() }
        let daemon = try await takeOver(after: name, engine)
        let (recorded, answer) = try await exchange(name, with: daemon)
        let answered = try PushNotificationQueryResponse(parsing: answer)
        let expected = try PushNotificationQueryResponse(parsing: try #require(recorded.applicationMetadata?.payload).bytes)
        #expect(answered.messageID == expected.messageID)
        #expect(answered.success == expected.success)
        // The server of status-go leaves its own key out.
        let server = try clients.vectors.pair("server").publicKey.compressed
        let rows = expected.info.map { row in
            var row = row
            row.serverPublicKey = server
            return row
        }
        #expect(!rows.isEmpty)
        #expect(Set(answered.info) == Set(rows) && answered.info.count == rows.count)
        #expect(await daemon.stop().status == 0)
    }

    @Test(
        arguments: [
            "req_message_apn", "req_message_firebase", "req_message_with_payload", "req_mention_allowed", "req_muted_chat",
            "req_blocked_author", "req_wrong_token", "req_not_registered_installation",
        ])
    func recordedRequestsAreAnswered(_ name: String) async throws {
        defer { node.gorush.stop() }
        let daemon = try await takeOver(after: name)
        let (recorded, answer) = try await exchange(name, with: daemon)
        #expect(answer == recorded.applicationMetadata?.payload?.bytes)
        // Ending, the node posts what it accepted.
        #expect(await daemon.stop().status == 0)
        #expect(try node.gorush.posted == PostedEntry.list((clients.flow(name).gorush ?? []).map { Array($0.body.utf8) }))
    }
}
