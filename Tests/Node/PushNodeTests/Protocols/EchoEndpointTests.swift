import NodeAssembly
import NodeAPI
import CurlClient
import Delivery
import Logging
import PushNode
import Core
import ServiceLifecycle
import TestSupport
import Testing
import Waku
import WakuCrypto

@Suite("A protocol with an endpoint of its own")
struct EchoEndpointTests {
    private let folder: TemporaryFolder
    private let gorush = ScriptedGorush()
    private let relay = FeedRelay()
    private let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    init() throws {
        folder = try TemporaryFolder()
    }

    private func node(port: Int) throws -> NodeService {
        try NodeService(
            NodeConfiguration(identity: .generate(), dataPath: folder.path), protocols: [EchoEndpoint(port: port)],
            gorush: [GorushEndpoint(gorush)], logger: quiet
        ) { [relay] needs in
            #expect(needs.ownTopics.isEmpty)
            return relay
        }
    }

    @Test("It registers devices and notifies them; the node is ready once it listens, and stops it")
    func endpoint() async throws {
        let port = Int(try freePort())
        let node = try node(port: port)
        #expect(node.obstacles.contains("echo: listening on port \(port)"))
        let services = ServiceGroup(services: [node], logger: quiet)
        let client = CurlClient()
        @Sendable func post(_ text: String) async throws -> Int {
            let url = "http://127.0.0.1:\(port)/echo"
            return try await client.send(HTTPRequest(method: "POST", url: url, body: Array(text.utf8), timeout: .seconds(60))).status
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await services.run() }
            try await node.wait { node.obstacles.isEmpty }
            let statuses = [try await post("register phone secret-token"), try await post("notify phone hello")]
            #expect(statuses == [200, 200])
            try await node.wait { gorush.accepted.map(\.deviceToken) == [DeviceToken("secret-token")] }
            await services.triggerGracefulShutdown()
            try await group.waitForAll()
        }
        await #expect(throws: (any Error).self) { try await post("register phone token") }
    }

    @Test("The node stops when a protocol's endpoint can't listen")
    func portInUse() async throws {
        let taken = try RawHTTPServer { _ in .last([]) }
        defer { taken.stop() }
        let port = try #require(taken.url.split(separator: ":").last.flatMap { Int($0) })
        let services = ServiceGroup(services: [try node(port: port)], logger: quiet)
        await #expect(throws: NodeError(message: "can't listen on port \(port)")) { try await services.run() }
    }
}
