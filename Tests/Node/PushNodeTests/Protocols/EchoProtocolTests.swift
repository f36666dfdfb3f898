import Delivery
import Foundation
import Logging
import NodeAPI
import NodeAssembly
import NodeMetrics
import PushNode
import Core
import ServiceLifecycle
import StatusProtocol
import StatusServer
import Storage
import StoreSQLite
import TestSupport
import Testing
import Waku
import WakuCrypto

/// A second protocol plugs into the node without changes to other files, with the same relay, store, outbox and gorush.
@Suite("A second protocol on the node")
struct EchoProtocolTests {
    private let folder: TemporaryFolder
    private let identity = PrivateKey.generate()
    private let gorush = ScriptedGorush()
    private let relay = FeedRelay()

    init() throws {
        folder = try TemporaryFolder()
    }

    private func message(_ text: String) -> WakuMessage {
        WakuMessage(payload: Array(text.utf8), contentTopic: EchoProtocol.topic, timestamp: .now())
    }

    private func answers() -> [String] {
        relay.published.filter { $0.contentTopic == EchoProtocol.answerTopic }.map { String(decoding: $0.payload, as: UTF8.self) }
    }

    /// Runs a node with the Status and echo protocols while `body` runs, and stops it gracefully.
    private func withNode(speaksEcho: Bool = true, _ body: @escaping @Sendable (NodeService) async throws -> Void) async throws {
        let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        var configuration = NodeConfiguration(identity: identity, dataPath: folder.path)
        configuration.awaitLimit = .seconds(60)
        configuration.replyDelay = .zero
        var settings = StatusPush.Configuration()
        settings.deriveAheadLimit = nil
        let node = try NodeService(
            configuration, protocols: [StatusPush(identity: identity, settings)] + (speaksEcho ? [EchoProtocol()] : []),
            gorush: [GorushEndpoint(gorush)],
            logger: quiet
        ) { [relay] _ in relay }
        let services = ServiceGroup(services: [node], logger: quiet)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await services.run() }
            do {
                try await node.wait { relay.state == .attached }
                try await body(node)
            } catch {
                await services.triggerGracefulShutdown()
                throw error
            }
            await services.triggerGracefulShutdown()
            try await group.waitForAll()
        }
    }

    @Test("It registers and notifies devices, beside Status")
    func bothProtocols() async throws {
        let client = TestClient(of: identity.publicKey)
        try await withNode { node in
            await relay.feed([message("register phone secret-token")])
            try await node.wait { answers() == ["registered phone"] }
            let registration = WakuMessage(
                payload: TestPayload.sealed(client.envelope(client.registration()), signedBy: client.identity, to: identity.publicKey),
                contentTopic: ContentTopic(TopicTag(of: StatusTopics.personal(identity.publicKey))), timestamp: .now())
            await relay.feed([registration, message("notify phone hello"), message("notify nobody hello")])
            try await node.wait { relay.published.count == 4 }
            #expect(Set(answers().dropFirst()) == ["accepted phone", "failed nobody"])
            #expect(gorush.accepted.map(\.deviceToken) == [DeviceToken("secret-token")])
            #expect((gorush.accepted.first?.content as? TextContent)?.text == "hello")
        }
    }

    @Test("Waiting notifications are delivered after a restart, to the current token")
    func restart() async throws {
        gorush.answer(.failed(retryAfter: nil))
        try await withNode { node in
            await relay.feed([message("register phone old-token"), message("notify phone hello")])
            try await node.wait { gorush.attempts > 0 }
            await relay.feed([message("register phone new-token")])
            try await node.wait { answers().count(where: { $0 == "registered phone" }) == 2 }
        }
        gorush.answer(.accepted)
        try await withNode { node in
            try await node.wait { gorush.accepted.map(\.deviceToken) == [DeviceToken("new-token")] }
        }
    }

    @Test("A dead token removes the device by the protocol's own rule")
    func deadToken() async throws {
        gorush.answer(.accepted, verdict: .dead)
        try await withNode { node in
            await relay.feed([message("register phone token"), message("notify phone hello")])
            try await node.wait { answers().contains("accepted phone") }
            try await node.wait { node.counters.count(.tokenRemoved) == 1 }
            await relay.feed([message("notify phone again")])
            try await node.wait { answers().contains("failed phone") }
        }
    }

    @Test("Its tokens are encrypted at rest, and included in the database check")
    func sealed() async throws {
        try await withNode { node in
            await relay.feed([message("register phone secret-token-of-a-phone")])
            try await node.wait { !answers().isEmpty }
        }
        let path = DataFolder.databasePath(in: folder.path)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(bytes.range(of: Data("secret-token-of-a-phone".utf8)) == nil)
        let inspection = try StoreInspection(
            of: path, storageKey: Sealer.storageKey(of: identity), parts: NodeAssembly.parts + [EchoProtocol().part])
        #expect(inspection.rows?["echo devices"] == StoreInspection.Rows(count: 1))
        #expect(inspection.isWhole)
    }

    @Test("A node without the protocol does not change its rows")
    func withoutIt() async throws {
        try await withNode { node in
            await relay.feed([message("register phone token")])
            try await node.wait { !answers().isEmpty }
        }
        try await withNode(speaksEcho: false) { node in
            await relay.feed([message("notify phone hello")])
            try await node.wait { node.counters.count(.foreign) == 1 }
        }
        #expect(gorush.accepted.isEmpty)
        try await withNode { node in
            await relay.feed([message("notify phone hello")])
            try await node.wait { answers().contains("accepted phone") }
        }
    }
}
