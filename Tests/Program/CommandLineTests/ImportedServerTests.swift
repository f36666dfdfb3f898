import CurlClient
import Foundation
import NwakuRelay
import StatusProtocol
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

/// A daemon that took over the database of a recorded push server of status-go answers what its clients sent as that server answered it.
@Suite(.timeLimit(.minutes(5)))
struct ImportedServerTests {
    private struct Incomplete: Error {}

    private let node: OperatedNode
    private let database: String
    private let identity: String
    private let client = CurlClient()
    private let vectors = StatusGoVectors.recorded

    init() throws {
        node = try OperatedNode()
        database = node.folder.path + "/pushserver.db"
        identity = node.folder.path + "/imported.key"
    }

    /// Imports the recorded server's rows as they were after a flow, and starts a node on them.
    private func takeOver(after flow: String) async throws -> Daemon {
        let rows = StatusGoFixture.rows(after: flow)
        try #require(!rows.isEmpty)
        let sql = rows.map(StatusGoFixture.row).joined() + StatusGoFixture.identity(try vectors.pair("server"))
        try await StatusGoFixture.write(.statusGo, sql, to: database)
        try write(StatusGoFixture.password, to: node.folder.path + "/password")
        let imported = try await run(
            "admin", "import", "status-go", database, "--data", node.data, "--identity", identity, "--password-file",
            node.folder.path + "/password", "--default-apn-topic", "im.status.ethereum", "--skip")
        try #require(imported.status == 0, "\(imported.errors)")
        return try await Daemon.start(["--identity", identity, "--data", node.data, "--gorush", node.gorush.url])
    }

    /// Sends a recorded envelope again, signed and sealed as its client did it, now: the recorded time would be too old.
    private func send(_ message: StatusGoVectors.Message, _ api: NwakuAPI) async throws {
        guard let envelope = message.applicationMetadata?.bytes.bytes, let signer = message.payloadPlain?.signerPublicKey,
            let encryption = message.encryption
        else { throw Incomplete() }
        let key = try vectors.pair(publicKey: signer)
        let payload =
            if let password = encryption.password {
                TestPayload.sealed(envelope, signedBy: key, topic: password)
            } else {
                TestPayload.sealed(envelope, signedBy: key, to: try PublicKey(parsing: encryption.recipientPublicKey?.bytes ?? []))
            }
        let sent = WakuMessage(payload: payload, contentTopic: ContentTopic(rawValue: message.contentTopic), timestamp: .now())
        _ = try await api.push(sent, on: .statusDefault)
    }

    /// The answer on the topic of a recorded answer, to the same key and of the same kind.
    private func answer(like recorded: StatusGoVectors.Message, _ api: NwakuAPI) async throws -> [UInt8] {
        guard let recipient = recorded.encryption?.recipientPublicKey else { throw Incomplete() }
        let key = try vectors.pair(publicKey: recipient)
        let topic = ContentTopic(rawValue: recorded.contentTopic)
        var found: [UInt8]?
        try await eventually {
            let messages = try await api.query(StoreQuery(pubsubTopic: .statusDefault)).messages
            for message in messages.map(\.message) where message.contentTopic == topic {
                guard let frame = try? PayloadFrame(parsing: ECIES.open(message.payload, with: key)), let signer = frame.signer,
                    let envelope = try? MetadataEnvelope(parsing: frame.data, wakuSigner: signer),
                    envelope.kind.rawValue == recorded.applicationMetadata?.type
                else { continue }
                #expect(envelope.sender == (try vectors.pair("server").publicKey))
                found = envelope.payload
            }
            return found != nil
        }
        return try #require(found)
    }

    private func flow(_ name: String) throws -> StatusGoVectors.Flow { try #require(vectors.flows.first { $0.name == name }) }

    /// Sends what the client of a recorded flow sent first.
    ///
    /// - Returns: What was answered then, and what is answered now.
    private func exchange(_ name: String, with daemon: Daemon) async throws -> (recorded: StatusGoVectors.Message, answer: [UInt8]) {
        let api = NwakuAPI(address: try NodeAddress(daemon.relayURL), client: client)
        let flow = try flow(name)
        let (sent, recorded) = (try #require(flow.wireIn.first), try #require(flow.wireOut?.first))
        try await send(sent, api)
        return (recorded, try await answer(like: recorded, api))
    }

    @Test(arguments: ["query_contacts_only_allowed", "query_contacts_only_not_allowed", "query_same_key_twice"])
    func recordedQueriesAreAnswered(_ name: String) async throws {
        defer { node.gorush.stop() }
        let daemon = try await takeOver(after: name)
        let (recorded, answer) = try await exchange(name, with: daemon)
        let answered = try PushNotificationQueryResponse(parsing: answer)
        let expected = try PushNotificationQueryResponse(parsing: try #require(recorded.applicationMetadata?.payload).bytes)
        #expect(answered.messageID == expected.messageID)
        #expect(answered.success == expected.success)
        // The server of status-go leaves its own key out.
        let server = try vectors.pair("server").publicKey.compressed
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
        struct Body: Decodable {
            struct Entry: Decodable {
                let tokens: [String]
                let platform: Int
            }
            let notifications: [Entry]
        }
        func entries(_ bodies: [[UInt8]]) throws -> [String] {
            try bodies.flatMap { try JSONDecoder().decode(Body.self, from: Data($0)).notifications }.map { "\($0.platform) \($0.tokens)" }
        }
        // Ending, the node posts what it accepted.
        #expect(await daemon.stop().status == 0)
        let posted = node.gorush.requests.filter { $0.head.hasPrefix("POST") }.map { Array($0.body) }
        #expect(try entries(posted) == entries((flow(name).gorush ?? []).map { Array($0.body.utf8) }))
    }
}
