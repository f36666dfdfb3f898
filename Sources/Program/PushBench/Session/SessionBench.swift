import NodeAPI
import Core
import CurlClient
import Foundation
import NodeAssembly
import SessionProtocol
import SessionServer
import SessionStandIns
import WakuCrypto

/// Session's push server: subscriptions over HTTP and by onion requests, reports of storage servers up to the posts to gorush, loading at the start,
/// and renewals on many connections. Clients, storage servers and gorush are stand-ins in this process, and their work is included in the
/// measurement; the floors include it as well.
struct SessionBench: Sendable {
    /// Concurrent requests, each on its own connection.
    static let inFlight = 256
    static let swarmCount = 286
    private static let swarms: [UInt64] = [1 << 62, 3 << 62]

    let settings: BenchSettings
    let subscriptionCount: Int
    let serverCount: Int
    let renewalRate: Double
    let sodium: Sodium

    /// - Parameters:
    ///   - subscriptionCount: the number of subscriptions that are loaded at the start.
    ///   - serverCount: the number of storage servers on which subscriptions are renewed.
    ///   - renewalRate: renewals a second.
    /// - Throws: if libsodium is missing.
    init(settings: BenchSettings, subscriptionCount: Int = 1_500_000, serverCount: Int = 2000, renewalRate: Double = 3500) throws {
        self.settings = settings
        self.subscriptionCount = subscriptionCount
        self.serverCount = serverCount
        self.renewalRate = renewalRate
        sodium = try Sodium.load()
    }

    /// An HTTP client with as many connections as ``inFlight`` requests need.
    static func makeClient() -> CurlClient { CurlClient(configuration: CurlConfiguration(maximumConnectionsPerHost: inFlight)) }

    /// Subscriptions over HTTP and by onion requests, and reports of storage servers up to the posts.
    func measureRequests() async throws -> [BenchResult] {
        // The node's number of connections depends on this limit.
        DescriptorLimit.raise()
        return try await StorageServerStandIn.running(sodium: sodium, swarms: Self.swarms) { servers in
            try await settings.withFolder { folder in
                let floor = SessionFloor(settings: settings, sodium: sodium, folder: folder)
                return try await settings.withFolder { try await measureNode(in: $0, with: servers, floor) }
            }
        }
    }

    private func measureNode(in folder: String, with servers: StorageServerStandIn, _ floor: SessionFloor) async throws -> [BenchResult] {
        let posts = PostingStandIn(latency: .zero)
        var configuration = BenchNode.configuration(.generate(), folder + "/data")
        let session = try session(nodes: Self.writeNodes(servers.descriptions, in: folder))
        configuration.session = session
        return try await BenchNode.running(configuration, gorush: posts) { [settings, sodium] node in
            let server = node.server
            try await Self.wait("storage servers connected") {
                server.sessionPort != nil && servers.figures.connections == Self.swarms.count
            }
            let run = SessionRun(
                settings: settings, server: server, servers: servers, posts: posts, onionKey: session.onionKey.publicKey, sodium: sodium,
                floor: floor)
            return try await run.measure()
        }
    }

    /// A Session server on a free port, whose monitor takes the storage servers from a file.
    ///
    /// - Parameter made: called with the monitor.
    func session(
        nodes: String, made: @escaping @Sendable (SubscriptionMonitor) -> Void = { _ in }
    ) throws(BenchError) -> SessionPush.Configuration {
        guard let key = OnionKey(.random(count: OnionKey.byteCount), sodium: sodium) else { throw .disk }
        return SessionPush.Configuration(
            httpAddress: SocketAddress(host: "127.0.0.1", port: 0), onionKey: key, sodium: sodium
        ) { [sodium] entries, receiver, logger, count in
            let monitor = SubscriptionMonitor(
                .init(source: .file(nodes)), sodium: sodium, entries: entries, receiver: receiver, logger: logger, count: count)
            made(monitor)
            return monitor
        }
    }

    /// The swarm of the storage server with this number, of as many as the network has.
    static func swarm(_ number: Int) -> UInt64 { UInt64(number % swarmCount) * (UInt64.max / UInt64(swarmCount)) }

    static func writeNodes(_ servers: [StorageServer], in folder: String) throws(BenchError) -> String {
        let path = folder + "/nodes.json"
        let text = StorageServerStandIn.nodesFile(servers)
        guard FileManager.default.createFile(atPath: path, contents: Data(text.utf8)) else { throw .disk }
        return path
    }

    /// - Throws: ``BenchError`` when the condition does not hold within a minute.
    static func wait(_ step: String, _ condition: () -> Bool) async throws {
        let problem = "not within a minute: \(step); does another program use all cores?"
        try await waitUntil(.seconds(60), interval: .milliseconds(1), else: problem, condition)
    }
}
