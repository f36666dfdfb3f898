import Core
import Delivery
import Logging
import NodeAssembly
import ServiceLifecycle
import TestSupport
import Testing
import Waku
import WakuCrypto
import WakuPushNode

@testable import PushNode
@testable import TopicPush

/// The example of a protocol in another package, which is built with the public declarations alone.
@Suite("A protocol of another package: topic push")
struct TopicPushTests {
    private static let chat = "/chat/1/lobby/proto"
    private let folder: TemporaryFolder
    private let identity = PrivateKey.generate()
    private let owner = PrivateKey.generate()
    private let gorush = ScriptedGorush()
    private let relay = FeedRelay()

    init() throws {
        folder = try TemporaryFolder()
    }

    private func registration(version: Int64 = 1, topics: [String] = [chat], end: Int64 = 4_000_000_000) throws -> WakuMessage {
        let asked = Registration(version: version, token: "token-\(version)", topics: topics, end: end, text: "somebody wrote")
        return WakuMessage(
            payload: try asked.sealed(by: owner, to: identity.publicKey), contentTopic: Registration.topic, timestamp: .now())
    }

    private func post(_ text: String, on topic: String = chat) -> WakuMessage {
        WakuMessage(payload: Array(text.utf8), contentTopic: ContentTopic(rawValue: topic), timestamp: .now())
    }

    /// Passes the owner's first registration to a node, which listens on its topics once it is durable.
    private func register(_ node: NodeService, _ registration: WakuMessage) async throws {
        await relay.feed([registration])
        try await node.wait { node.topicCount == 1 }
    }

    /// Runs a node of the program to which topic push is added, and stops it gracefully.
    private func withNode(
        at store: StoreLocation = .dataFolder, _ body: @escaping @Sendable (NodeService) async throws -> Void
    ) async throws {
        let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        var configuration = ServerConfiguration(identity: identity, dataPath: folder.path)
        configuration.store = store
        let server = try NodeAssembly.$added.withValue([TopicPush.description]) {
            try Server(configuration, gorush: gorush, logger: quiet) { [relay] _ in relay }
        }
        let services = ServiceGroup(services: [server.node], logger: quiet)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await services.run() }
            do {
                try await server.node.wait { relay.state == .attached }
                try await body(server.node)
            } catch {
                await services.triggerGracefulShutdown()
                throw error
            }
            await services.triggerGracefulShutdown()
            try await group.waitForAll()
        }
    }

    @Test("Messages on a registered topic notify once each; others are foreign", arguments: StoreEngine.allCases)
    func notifies(engine: StoreEngine) async throws {
        let message = post("hello")
        let store = try await engine.location()
        try await withNode(at: store) { node in
            try await register(node, try registration())
            await relay.feed([message, post("elsewhere", on: "/chat/1/garden/proto")])
            try await node.wait { gorush.accepted.count == 1 && node.counters.count(.foreign) == 1 }
            #expect(gorush.accepted.map(\.deviceToken) == [DeviceToken("token-1")])
            #expect((gorush.accepted.first?.content as? TextContent)?.text == "somebody wrote")
        }
        // After a restart the topic is known, and a message is handled again without a second notification.
        try await withNode(at: store) { node in
            await relay.feed([message, post("again")])
            try await node.wait { gorush.accepted.count == 2 }
        }
        #expect(gorush.accepted.count == 2)
    }

    @Test("An earlier version does not replace a later one, also after unregistering; a device is not notified after its end")
    func versions() async throws {
        let first = try registration()
        try await withNode { node in
            try await register(node, first)
            await relay.feed([try registration(version: 3, topics: [])])
            await relay.feed([try registration(version: 2)])
            await relay.feed([post("hello")])
            await relay.feed([try registration(version: 4, end: 1)])
            await relay.feed([post("too late")])
            await relay.feed([try registration(version: 5)])
            await relay.feed([post("current")])
            try await node.wait { gorush.accepted.map(\.deviceToken) == [DeviceToken("token-5")] }
        }
    }

    @Test("A registration that another node forwards does not count as its owner's; other payloads are dropped")
    func foreignRegistrations() async throws {
        let asked = Registration(version: 1, token: "token", topics: [Self.chat], end: 4_000_000_000, text: "text")
        let other = PrivateKey.generate()
        let sealed = try asked.sealed(by: owner, to: other.publicKey)
        #expect(Registration.open(sealed, with: [identity, other])?.owner == owner.publicKey.compressed)
        let forwarded = ECIES.seal(try ECIES.open(sealed, with: other), to: identity.publicKey)
        #expect(Registration.open(forwarded, with: [identity])?.owner != owner.publicKey.compressed)
        try await withNode { node in
            await relay.feed([WakuMessage(payload: [1, 2, 3], contentTopic: Registration.topic, timestamp: .now())])
            try await node.wait { node.counters.count(.droppedMalformedMessage) == 1 }
        }
    }

    @Test("A dead token ends its device")
    func deadToken() async throws {
        gorush.answer(.accepted, verdict: .dead)
        try await withNode { node in
            try await register(node, try registration())
            await relay.feed([post("hello")])
            try await node.wait { node.counters.count(.tokenRemoved) == 1 }
        }
    }
}
