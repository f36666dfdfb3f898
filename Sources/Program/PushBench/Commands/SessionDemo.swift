import NodeAPI
import ArgumentParser
import CurlClient
import Foundation
import Delivery
import Logging
import LoopbackRelay
import NodeAssembly
import PushNode
import SessionProtocol
import SessionServer
import SessionStandIns
import WakuCrypto
import WakuPushCommands

struct SessionDemo: ReportingCommand {
    static let configuration = CommandConfiguration(
        commandName: "session-demo",
        abstract: "Demonstrates Session's push server on this machine, without a network: subscribes and notifies a phone.",
        discussion: """
            The demo starts a node that is Session's push server, three storage servers, and a fake gorush that prints what is posted to it, on free \
            ports of 127.0.0.1. A client subscribes by an onion request, the storage servers report messages, and the client opens the notification. \
            Each step is checked: the exit code is 0 only if all of them followed the protocol. Needs libsodium23.
            """)

    /// Two of the servers are in the first swarm, so that messages are reported twice.
    private static let swarms: [UInt64] = [1 << 62, 1 << 62, 3 << 62]

    func execute() async throws {
        let folder = NSTemporaryDirectory() + "waku-push-demo-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let sodium = try Sodium.load()
        let servers = try await StorageServerStandIn(sodium: sodium, swarms: Self.swarms)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let nodes = folder + "/nodes.json"
        try Data(StorageServerStandIn.nodesFile(servers.descriptions).utf8).write(to: URL(fileURLWithPath: nodes))
        guard let onionKey = OnionKey(.random(count: OnionKey.byteCount), sodium: sodium) else { throw CryptoError.invalidKey }

        let logger = Logger.warnings
        let gorush = GorushStandIn()
        let network = LoopbackNetwork()
        try await gorush.running { url in
            var session = SessionPush.Configuration(
                httpAddress: SocketAddress(host: "127.0.0.1", port: 0), onionKey: onionKey, sodium: sodium
            ) { entries, receiver, logger, count in
                SubscriptionMonitor(
                    .init(source: .file(nodes)), sodium: sodium, entries: entries, receiver: receiver, logger: logger, count: count)
            }
            session.apnsTopic = "com.loki-project.loki-messenger"
            var configuration = ServerConfiguration(identity: .generate(), dataPath: folder + "/data")
            configuration.session = session
            let server = try Server(
                configuration, gorush: GorushClient(client: CurlClient(), url: url), logger: logger
            ) { network.relay(pubsubTopics: $0.pubsubTopics) }
            let script = SessionDemoScript(server: server, servers: servers, gorush: gorush, onionKey: onionKey.publicKey, sodium: sodium)
            try await firstResult(of: script.run) { try await server.node.run() }
        }
        await servers.shutDown()
        Output.line()
        Output.line("All steps followed the protocol.")
    }
}
