import Delivery
import NodeAssembly
import NodeMetrics
import Core
import StatusProtocol
import Storage
import StorePostgreSQL
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode
@testable import StatusServer

/// A node was killed while posts were unanswered: their rows have its marks.
@Suite("Several nodes: unanswered posts of a killed node", .timeLimit(.minutes(10)))
struct UnknownOutcomeClusterTests {
    private let fixture: ClusterFixture

    init() async throws {
        fixture = try await ClusterFixture()
    }

    private func run(_ sql: String) throws -> [Row] {
        try PostgreSQLConnection.open(fixture.address, name: "test").run(Statement(sql, isPrepared: false)).rows
    }

    private func enqueue(_ messages: [[UInt8]], to client: TestClient) async throws {
        let store = try NodeAssembly.existingStore(at: .postgreSQL(fixture.address), in: "", of: fixture.identity)
        let row = try #require(try store.read(Registrations.head(of: client.key))).id
        try await store.commit(
            StoreCommand<Void>.change(
                messages.map { message in
                    DeliveryStorage.enqueue(
                        DeliveryID(messageID: message, key: client.key), for: DeviceID(StatusStorage.protocolNumber, row: row),
                        payload: StatusPayload.encode(client.notification { $0.message = message }), expires: .now() + .seconds(600),
                        by: store.sealer)
                }))
        try store.close()
    }

    private func withNode(_ body: @escaping @Sendable (ClusterFixture.Member) async throws -> Void) async throws {
        try await fixture.withNodes(["a"], configure: { $0.unknownHold = .seconds(60) }) { members async throws in
            try await members.waitUntilShared()
            try await body(members[0])
        }
    }

    @Test(
        "The next owner posts again: at once if the device shows a repetition once, else after the hold time, which later hand-overs do not restart"
    )
    func takeOver() async throws {
        let clients = (0..<2).map { _ in TestClient(of: fixture.identity.publicKey) }
        try await withNode { [fixture] member async throws in
            await member.relay.feed(
                EnvelopeSealing.seal(
                    clients[0].envelope(clients[0].registration()), to: .personal(fixture.identity.publicKey),
                    wakuSigner: clients[0].identity, at: .now()))
            await member.relay.feed(
                EnvelopeSealing.seal(
                    clients[1].envelope(
                        clients[1].registration {
                            ($0.tokenType, $0.apnTopic) = (UInt32(Platform.firebase.rawValue), "")
                        }), to: .personal(fixture.identity.publicKey), wakuSigner: clients[1].identity, at: .now()))
            try await member.fed.wait { member.fed.count(.registrationStored) == 2 }
        }
        // [2] and [4] are behind the ones that were posted.
        try await enqueue([[1], [2]], to: clients[0])
        try await enqueue([[3], [4]], to: clients[1])
        _ = try run("INSERT INTO cluster_mark (row_id, node, epoch) SELECT min(id), 4711, 0 FROM outbox GROUP BY device")
        func ids(_ messages: [UInt8], _ client: TestClient) -> [String] {
            messages.map { DeliveryID(messageID: [$0], key: client.key).notificationID }
        }
        let gorush = fixture.gorush
        for _ in 0..<2 {
            try await withNode { member async throws in
                try await member.fed.wait { gorush.accepted.count >= 2 && member.fed.node.delivery.waitingCount == 2 }
            }
            #expect(gorush.accepted.map(\.id) == ids([1, 2], clients[0]))
        }
        // A minute later.
        _ = try run("UPDATE cluster_mark SET marked_at = marked_at - interval '60 s'")
        try await withNode { member async throws in
            try await member.fed.wait { gorush.accepted.count >= 4 && member.fed.node.delivery.waitingCount == 0 }
        }
        #expect(gorush.accepted.map(\.id) == ids([1, 2], clients[0]) + ids([3, 4], clients[1]))
        #expect(try run("SELECT 1 FROM cluster_mark").isEmpty)
    }
}
