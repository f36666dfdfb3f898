import Delivery
import NodeAssembly
import Core
import StatusProtocol
import Storage
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode
@testable import StatusServer

/// A data folder with the outbox of a node that was killed.
private struct KilledNode {
    static let hold = Duration.seconds(60)
    static let start = Timestamp.now()

    let fixture: NodeFixture
    let location: StoreLocation

    init(_ engine: StoreEngine) async throws {
        fixture = try NodeFixture()
        location = try await engine.location()
    }

    /// Runs a node at a time of its clock.
    func withNode(at clock: Timestamp, _ body: @escaping @Sendable (RunningNode) async throws -> Void) async throws {
        try await fixture.withNode(
            configure: { configuration in
                configuration.store = location
                configuration.unknownHold = Self.hold
            }, now: { clock }, body)
    }

    /// Puts notifications into the outbox as a node does that is killed after it posted the first of them.
    ///
    /// - Parameter markedAt: nil: as an earlier release did.
    func enqueue(_ messages: [[UInt8]], to client: TestClient, markedAt: Timestamp?) async throws {
        let store = try NodeAssembly.existingStore(at: location, in: fixture.folder.path, of: fixture.identity)
        let row = try #require(try store.read(Registrations.head(of: client.key))).id
        try await store.commit(
            StoreCommand<Void>.change(
                messages.map { message in
                    DeliveryStorage.enqueue(
                        DeliveryID(messageID: message, key: client.key), for: DeviceID(StatusStorage.protocolNumber, row: row),
                        payload: StatusPayload.encode(client.notification { $0.message = message }),
                        expires: Self.start + .seconds(600), markedAt: markedAt, by: store.sealer)
                }))
        try store.close()
    }

    func ids(_ messages: [[UInt8]], to client: TestClient) -> [String] {
        messages.map { DeliveryID(messageID: $0, key: client.key).notificationID }
    }

    func registered(_ platforms: [Platform]) async throws -> [TestClient] {
        let clients = platforms.map { _ in TestClient(of: fixture.identity.publicKey) }
        try await withNode(at: Self.start) { node async throws in
            for (client, platform) in zip(clients, platforms) {
                #expect(try await node.register(client, token: "token of \(platform)", platform: platform) == nil)
            }
        }
        return clients
    }
}

/// A node was killed while posts were unanswered: their notifications are in the outbox with a mark.
@Suite("Restart after unanswered posts", .timeLimit(.minutes(5)))
struct UnknownOutcomeRestartTests {
    private static let start = KilledNode.start

    @Test(
        "Notifications that the device shows once are posted again at once; others after the hold, which a restart does not restart, and the device's later ones after them",
        arguments: StoreEngine.allCases)
    func restart(engine: StoreEngine) async throws {
        let test = try await KilledNode(engine)
        let clients = try await test.registered([.apn, .firebase, .firebase])
        try await test.enqueue([[1], [2]], to: clients[0], markedAt: Self.start)
        try await test.enqueue([[3], [4]], to: clients[1], markedAt: Self.start)
        let (visible, held) = (test.ids([[1], [2]], to: clients[0]), test.ids([[3], [4]], to: clients[1]))

        // Twice within the hold.
        for second in [1, 59] as [Int64] {
            try await test.withNode(at: Self.start + .seconds(second)) { node async throws in
                try await node.wait { node.gorush.accepted.count >= 2 && node.node.delivery.waitingCount == 2 }
                // A new notification for another device does not wait.
                #expect(try await node.notify(clients[2]) == nil)
                #expect(node.gorush.accepted.prefix(2).map(\.id) == visible)
                #expect(!node.gorush.accepted.contains { held.contains($0.id) })
            }
        }
        try await test.withNode(at: Self.start + .seconds(60)) { node async throws in
            try await node.wait { node.node.delivery.waitingCount == 0 }
            #expect(node.gorush.accepted.suffix(2).map(\.id) == held)
        }
        #expect(test.fixture.gorush.accepted.count == 6)
    }

    @Test("Rows of an earlier release, which have no mark, are posted at once", arguments: StoreEngine.allCases)
    func unmarked(engine: StoreEngine) async throws {
        let test = try await KilledNode(engine)
        let clients = try await test.registered([.firebase])
        try await test.enqueue([[1], [2]], to: clients[0], markedAt: nil)
        try await test.withNode(at: Self.start) { node async throws in try await node.wait { node.node.delivery.waitingCount == 0 } }
        #expect(test.fixture.gorush.accepted.map(\.id) == test.ids([[1], [2]], to: clients[0]))
    }

    @Test("A node that stops waits for its posts: after the start nothing is posted twice", arguments: StoreEngine.allCases)
    func plannedRestart(engine: StoreEngine) async throws {
        let test = try await KilledNode(engine)
        let clients = try await test.registered([.firebase])
        let limits = AsyncStream.makeStream(of: Void.self)
        test.fixture.gorush.whilePosting { _ in for await _ in limits.stream {} }
        try await test.withNode(at: Self.start) { node async throws in
            Task { try await node.notify(clients[0], messageID: [1]) }
            try await node.wait { node.node.delivery.unansweredCount == 1 }
            // While it stops.
            Task { limits.continuation.finish() }
        }
        try await test.withNode(at: Self.start + .seconds(1)) { node async throws in
            #expect(node.node.delivery.waitingCount == 0)
            #expect(try await node.notify(clients[0], messageID: [2]) == nil)
        }
        #expect(test.fixture.gorush.accepted.map(\.id) == test.ids([[1], [2]], to: clients[0]))
    }
}
