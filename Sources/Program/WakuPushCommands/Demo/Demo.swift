import ArgumentParser
import CurlClient
import Foundation
import Delivery
import Logging
import LoopbackRelay
import LoopbackServer
import NodeAssembly
import NwakuRelay
import PushClient
import PushNode
import StatusProtocol
import Core
import Waku
import WakuCrypto

struct Demo: ReportingCommand {
    static let configuration = CommandConfiguration(
        abstract: "Demonstrates the node on this machine, without a network: registers, queries and notifies a phone.",
        discussion: """
            The demo generates keys and a temporary data folder, and starts the loopback relay, a fake gorush that prints what is posted to it, a node \
            and two clients. They communicate over sockets on free ports of 127.0.0.1. Each step is checked: the exit code is 0 only if all of them \
            followed the protocol.

            With --session it runs waku-push-bench session-demo instead, which demonstrates Session's push server. That program is not installed with \
            waku-push.
            """)

    @Flag(help: "Demonstrate Session's push server: run waku-push-bench session-demo.")
    var session = false

    func execute() async throws {
        if session { return try SiblingProgram.bench.replaceProcess(["session-demo"]) }
        let folder = NSTemporaryDirectory() + "waku-push-demo-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let logger = Logger.warnings
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

            Output.line("Started the loopback relay at \(relayURL), a fake gorush at \(gorushURL), and a node:")
            Output.line("  public key \(identity.publicKey.hex)")
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
        Output.line("All steps followed the protocol.")
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
