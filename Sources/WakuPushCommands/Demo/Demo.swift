import ArgumentParser
import CurlClient
import Foundation
import Gorush
import Logging
import LoopbackRelay
import NodeAssembly
import NwakuRelay
import PushClient
import PushNode
import StatusProtocol
import Waku
import WakuCrypto

struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the main job on this machine alone: a phone is registered, asked about and notified.",
        discussion: """
            It makes keys and a data folder that are gone afterwards, a network of one (the loopback relay), a stand-in for gorush that shows what it is \
            posted, a node, and two clients. All of them talk over sockets on 127.0.0.1, on ports that are free. Each step is checked: the exit code \
            is 0 only if all went as the protocol says.
            """)

    func run() async throws {
        try await reportingFailures {
            let folder = NSTemporaryDirectory() + "waku-push-demo-" + UUID().uuidString
            defer { try? FileManager.default.removeItem(atPath: folder) }
            let logger = Logger(label: "waku-push") { _ in LineLogHandler(format: .text, level: .warning) }
            let network = LoopbackNetwork()
            let gorush = GorushStandIn()

            try await withThrowingTaskGroup(of: Bool.self) { group in
                let relayServer = LoopbackServer(network: network, host: "127.0.0.1", port: 0, logger: logger)
                let (ports, bound) = AsyncStream.makeStream(of: Int.self)
                group.addTask {
                    try await relayServer.run { bound.yield($0) }
                    return false
                }
                group.addTask {
                    try await gorush.run()
                    return false
                }
                let gorushURL = "http://127.0.0.1:\(try await gorush.port)"
                var relayPort = 0
                for await port in ports {
                    relayPort = port
                    break
                }
                let relayURL = "http://127.0.0.1:\(relayPort)"

                let identity = PrivateKey.generate()
                let server = try Server(
                    ServerConfiguration(identity: identity, dataPath: folder),
                    gorush: GorushClient(client: CurlClient(), url: gorushURL), logger: logger
                ) { network.relay(pubsubTopics: $0.pubsubTopics) }
                group.addTask {
                    try await server.node.run()
                    return false
                }

                Output.line("A network of one at \(relayURL), a stand-in for gorush at \(gorushURL), and a node:")
                Output.line("  key \(identity.publicKey.hex)")
                let bob = try DemoClient(relayURL: relayURL, logger: logger)
                let alice = try DemoClient(relayURL: relayURL, logger: logger)
                for client in [bob, alice] {
                    group.addTask {
                        await client.client.run()
                        return false
                    }
                }
                group.addTask {
                    try await DemoScript(server: identity.publicKey, bob: bob, alice: alice, gorush: gorush).run()
                    return true
                }
                for try await isDone in group where isDone { break }
                group.cancelAll()
            }
            Output.line()
            Output.line("All steps went as the protocol says.")
        }
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
