import CurlClient
import Delivery
import Logging
import LoopbackRelay
import LoopbackServer
import NodeAssembly
import PushNode
import StatusV01Server
import TestSupport
import WakuCrypto

/// A push server in this process, the loopback relay's REST API in front of it, and a gorush behind it that accepts everything.
struct LoopbackPushServer: Sendable {
    let key: PublicKey
    let relayURL: String
    let network: LoopbackNetwork
    let gorush: RawHTTPServer

    var publicKey: String { "0x" + key.hex }
    var postCount: Int { gorush.requests.count { $0.head.hasPrefix("POST") } }

    /// Runs it during `body`.
    ///
    /// - Parameters:
    ///   - hasV01: Whether version 0.1 is on.
    ///   - body: Runs while the server runs.
    static func run(hasV01: Bool = false, _ body: @Sendable @escaping (LoopbackPushServer) async throws -> Void) async throws {
        let folder = try TemporaryFolder()
        let gorush = try RawHTTPServer { _ in .status(200, body: #"{"success":"ok","counts":1,"logs":[]}"#) }
        defer { gorush.stop() }
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let network = LoopbackNetwork()
        let identity = PrivateKey.generate()
        var configuration = ServerConfiguration(identity: identity, dataPath: folder.path + "/data")
        if hasV01 { configuration.statusV01 = StatusPushV01.Configuration() }
        let server = try Server(
            configuration,
            gorush: GorushClient(client: CurlClient(), url: gorush.url), logger: logger
        ) { network.relay(pubsubTopics: $0.pubsubTopics) }
        let relay = LoopbackServer(network: network, host: "127.0.0.1", port: 0, logger: logger)
        let (ports, bound) = AsyncStream.makeStream(of: Int.self)
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await relay.run { bound.yield($0) }
                return false
            }
            group.addTask {
                try await server.node.run()
                return false
            }
            group.addTask {
                for await port in ports {
                    try await body(
                        LoopbackPushServer(
                            key: identity.publicKey, relayURL: "http://127.0.0.1:\(port)", network: network, gorush: gorush))
                    break
                }
                return true
            }
            for try await isDone in group where isDone { break }
            group.cancelAll()
        }
    }
}
