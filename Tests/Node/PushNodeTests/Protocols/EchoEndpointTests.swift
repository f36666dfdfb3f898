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
    private let identity = PrivateKey.generate()
    private let gorush = ScriptedGorush()
    private let relay = FeedRelay()
    private let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    init() throws {
        folder = try TemporaryFolder()
    }

    private func node(port: Int, http: SocketAddress? = nil) throws -> NodeService {
        var configuration = NodeConfiguration(identity: identity, dataPath: folder.path)
        configuration.httpAddress = http
        return try NodeService(
            configuration, protocols: [EchoEndpoint(port: port)], gorush: [GorushEndpoint(gorush)], logger: quiet
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
        try await run(node) {
            try await node.wait { node.obstacles.isEmpty }
            let statuses = [try await post("register phone secret-token", to: port), try await post("notify phone hello", to: port)]
            #expect(statuses == [200, 200])
            try await node.wait { gorush.accepted.map(\.deviceToken) == [DeviceToken("secret-token")] }
        }
        await #expect(throws: (any Error).self) { try await post("register phone token", to: port) }
    }

    private func post(_ text: String, to port: Int) async throws -> Int {
        let url = "http://127.0.0.1:\(port)/echo"
        return try await CurlClient().send(HTTPRequest(method: "POST", url: url, body: Array(text.utf8), timeout: .seconds(60))).status
    }

    private func run(_ node: NodeService, _ body: () async throws -> Void) async throws {
        let services = ServiceGroup(services: [node], logger: quiet)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await services.run() }
            try await body()
            await services.triggerGracefulShutdown()
            try await group.waitForAll()
        }
    }

    @Test("A node whose port, or that of a protocol, is in use ends, and posts nothing that waits", arguments: [false, true])
    func portInUse(isOwn: Bool) async throws {
        let (taken, free) = (try RawHTTPServer { _ in .last([]) }, Int(try freePort()))
        defer { taken.stop() }
        gorush.answer(.failed(retryAfter: nil))
        let first = try node(port: free)
        try await run(first) {
            try await first.wait { first.obstacles.isEmpty }
            let statuses = [try await post("register phone token", to: free), try await post("notify phone hello", to: free)]
            #expect(statuses == [200, 200])
            try await first.wait { gorush.attempts > 0 }
        }

        gorush.answer(.accepted)
        let before = gorush.attempts
        let address = SocketAddress(host: "127.0.0.1", port: Int(taken.port))
        let expected =
            isOwn ? "can't listen on \(address): another program uses it. Choose another with --http" : "can't listen on port \(taken.port)"
        // As systemd does. Each start needs the folder's lock and the store, which the one before has released.
        for _ in 0..<5 {
            let node = isOwn ? try node(port: free, http: address) : try node(port: Int(taken.port))
            let services = ServiceGroup(services: [node], logger: quiet)
            await #expect(throws: NodeError(message: expected)) { try await services.run() }
            #expect(node.waitingCount == 1)
        }
        #expect(gorush.attempts == before)
    }
}
