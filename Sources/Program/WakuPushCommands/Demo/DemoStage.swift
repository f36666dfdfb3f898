import CurlClient
import Delivery
import Foundation
import Logging
import LoopbackRelay
import LoopbackServer
import NodeAssembly
import NwakuRelay
import PushClient
import PushNode
import StatusProtocol
import Waku
import WakuCrypto

/// The loopback relay, a node and two clients, which communicate over sockets on free ports of 127.0.0.1.
struct DemoStage: Sendable {
    let server: PublicKey
    let bob: DemoClient
    let alice: DemoClient

    /// Runs all of them, and the script until it ends.
    ///
    /// - Parameter configure: sets up the node, once the receiver runs. Returns the gorush servers, and their description.
    static func run(
        in folder: String, receiver: @escaping @Sendable () async throws -> Void,
        configure: (inout ServerConfiguration) async throws -> (endpoints: [GorushEndpoint], receiver: String),
        _ script: @escaping @Sendable (DemoStage) async throws -> Void
    ) async throws {
        let logger = Logger.warnings
        let network = LoopbackNetwork()
        try await withThrowingTaskGroup(of: Bool.self) { group in
            let relayServer = LoopbackServer(network: network, host: "127.0.0.1", port: 0, logger: logger)
            let (ports, bound) = AsyncStream.makeStream(of: Int.self)
            group.addTask {
                defer { bound.finish() }
                try await relayServer.run { bound.yield($0) }
                return false
            }
            group.addTask {
                try await receiver()
                return false
            }
            var configuration = ServerConfiguration(identity: .generate(), dataPath: folder)
            let (endpoints, receiverName) = try await configure(&configuration)
            let relayURL = "http://127.0.0.1:\(try await firstPort(ports))"
            let server = try Server(configuration, gorush: endpoints, logger: logger) { network.relay(pubsubTopics: $0.pubsubTopics) }
            group.addTask {
                try await server.node.run()
                return false
            }

            let publicKey = configuration.identity.publicKey
            Output.line("Started the loopback relay at \(relayURL), \(receiverName), and a node:")
            Output.line("  public key \(publicKey.hex)")
            let stage = DemoStage(
                server: publicKey, bob: try DemoClient(relayURL: relayURL, logger: logger),
                alice: try DemoClient(relayURL: relayURL, logger: logger))
            for client in [stage.bob, stage.alice] {
                group.addTask {
                    await client.client.run()
                    return false
                }
            }
            group.addTask {
                try await script(stage)
                return true
            }
            for try await isDone in group where isDone { break }
            group.cancelAll()
        }
        Output.line()
        Output.line("All steps followed the protocol.")
    }

    /// The port of a server, once it listens.
    ///
    /// - Throws: ``CommandFailure`` if the server ended without listening.
    static func firstPort(_ ports: AsyncStream<Int>) async throws(CommandFailure) -> Int {
        for await port in ports { return port }
        throw CommandFailure(.unavailable, "can't listen on a port of 127.0.0.1")
    }

    /// The time limit for an answer. Generous, for machines under load: real clients wait 3 s.
    static let timeout = Duration.seconds(60)

    /// nil: no report came. The inner nil is success.
    func notify(_ notification: PushNotification, _ messageID: [UInt8]) async throws -> PushNotificationReport.ErrorType?? {
        try await alice.client.notify([notification], messageID: messageID, at: server, timeout: Self.timeout).first?.error
    }

    /// A notification for Bob about a message of Alice.
    func notification(for installation: InstallationID, accessToken: AccessToken) -> PushNotification {
        PushNotification(
            accessToken: accessToken, chatID: Shake256.hash64(Array("a chat".utf8)), publicKey: KeyHash(of: bob.identity.publicKey).bytes,
            installationID: installation, message: [0xC0, 0xFF, 0xEE], kind: .message,
            author: Shake256.hash64(Array(("0x" + alice.identity.publicKey.hex).utf8)))
    }
}

/// A client with a key of its own, attached through the loopback relay's REST API as to any Waku node.
struct DemoClient: Sendable {
    let identity = PrivateKey.generate()
    let client: StatusPushClient

    init(relayURL: String, logger: Logger) throws {
        let watch = NwakuStoreWatch(
            configuration: NwakuStoreWatch.Configuration(
                address: try NodeAddress(relayURL), pubsubTopics: [.statusDefault], startTime: .now() - .seconds(1),
                interval: .milliseconds(50)),
            client: CurlClient(), logger: logger)
        client = StatusPushClient(identity: identity, relay: watch)
    }
}
