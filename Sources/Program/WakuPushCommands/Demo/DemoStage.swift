import CurlClient
import Delivery
import Logging
import LoopbackRelay
import LoopbackServer
import NodeAssembly
import NwakuRelay
import PushClient
import PushNode
import StatusProtocol
import WakuCrypto

/// The loopback relay, a node and two clients, which communicate over sockets on free ports of 127.0.0.1.
struct DemoStage: Sendable {
    let server: PublicKey
    let bob: DemoClient
    let alice: DemoClient

    /// Runs all of them, and the script until it ends.
    ///
    /// - Parameters:
    ///   - endpoint: the gorush server, or none.
    ///   - receiver: a description of the server that gets the notifications.
    static func run(
        _ configuration: ServerConfiguration, _ endpoint: GorushEndpoint, receiver: String,
        _ script: @escaping @Sendable (DemoStage) async throws -> Void
    ) async throws {
        let logger = Logger.warnings
        let network = LoopbackNetwork()
        let relay = LoopbackServer(network: network, host: "127.0.0.1", port: 0, logger: logger)
        try await withServer {
            try await relay.run(bound: $0)
        } _: { port in
            let relayURL = "http://127.0.0.1:\(port)"
            let server = try Server(configuration, gorush: [endpoint], logger: logger) { network.relay(pubsubTopics: $0.pubsubTopics) }
            let publicKey = configuration.node.identity.publicKey
            Output.line("Started the loopback relay at \(relayURL), \(receiver), and a node:")
            Output.line("  public key \(publicKey.hex)")
            let stage = DemoStage(server: publicKey, bob: try DemoClient(relayURL), alice: try DemoClient(relayURL))
            try await firstResult {
                try await script(stage)
            } beside: {
                try await withThrowingDiscardingTaskGroup { group in
                    group.addTask { try await server.node.run() }
                    for client in [stage.bob.client, stage.alice.client] { group.addTask { await client.run() } }
                }
            }
        }
        Output.line()
        Output.line("All steps followed the protocol.")
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

    init(_ relayURL: String) throws {
        let watch = NwakuStoreWatch(
            configuration: NwakuStoreWatch.Configuration(
                address: try NodeAddress(relayURL), pubsubTopics: [.statusDefault], startTime: .now() - .seconds(1),
                interval: .milliseconds(50)),
            client: CurlClient(), logger: .warnings)
        client = StatusPushClient(identity: identity, relay: watch)
    }
}
