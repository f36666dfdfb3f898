import NodeAPI
import Core
import CurlClient
import Delivery
import Foundation
import Logging
import NodeAssembly
import SessionProtocol
import SessionServer
import SessionStandIns
import Storage
import Synchronization
import WakuCrypto

/// Session's push server: subscriptions over HTTP and by onion requests, reports of storage servers up to the posts to gorush, loading at the start,
/// and renewals on many connections. Clients, storage servers and gorush are stand-ins in this process, and their work is included in the
/// measurement; the floors include it as well.
package struct SessionBench: Sendable {
    /// Concurrent requests, each on its own connection.
    static let inFlight = 256
    private static let swarms: [UInt64] = [1 << 62, 3 << 62]

    let settings: BenchSettings
    var subscriptionCount: Int = 1_500_000
    var serverCount: Int = 2000

    /// An HTTP client with as many connections as ``inFlight`` requests need.
    static func makeClient() -> CurlClient { CurlClient(configuration: CurlConfiguration(maximumConnectionsPerHost: inFlight)) }

    /// Subscriptions over HTTP and by onion requests, and reports of storage servers up to the posts.
    package func measureRequests() async throws -> [BenchResult] {
        let (sodium, library) = (try Sodium.load(), try ZeroMQLibrary.load())
        // The node's number of connections depends on this limit.
        DescriptorLimit.raise()
        return try await StorageServerStandIn.running(library: library, sodium: nil, swarms: Self.swarms) { servers in
            try await measureNode(with: servers, sodium, library)
        }
    }

    /// The start of a node with `subscriptionCount` subscriptions.
    package func measureStart() async throws -> BenchResult {
        let (sodium, library) = (try Sodium.load(), try ZeroMQLibrary.load())
        return try await SessionStartBench(
            settings: settings, subscriptionCount: subscriptionCount, sodium: sodium, library: library
        ).run()
    }

    /// Renewals on connections to `serverCount` storage servers.
    package func measureRenewals() async throws -> BenchResult {
        let (sodium, library) = (try Sodium.load(), try ZeroMQLibrary.load())
        return try await SessionMonitorBench(
            settings: settings, serverCount: serverCount, sodium: sodium, library: library
        ).measureRenewals()
    }

    private func measureNode(with servers: StorageServerStandIn, _ sodium: Sodium, _ library: ZeroMQLibrary) async throws -> [BenchResult] {
        try await settings.withFolder { folder in
            let floor = SessionFloor(settings: settings, sodium: sodium, library: library, folder: folder)
            return try await settings.withFolder { folder in
                let posts = PostCount()
                return try await withNode(folder, servers, sodium, library, posts) { server, onionKey in
                    let run = SessionRun(
                        settings: settings, server: server, servers: servers, posts: posts, onionKey: onionKey, sodium: sodium,
                        floor: floor)
                    return try await run.measure()
                }
            }
        }
    }

    /// Runs a node until the body is done.
    private func withNode(
        _ folder: String, _ servers: StorageServerStandIn, _ sodium: Sodium, _ library: ZeroMQLibrary, _ posts: PostCount,
        _ body: @escaping @Sendable (Server, [UInt8]) async throws -> [BenchResult]
    ) async throws -> [BenchResult] {
        let nodes = folder + "/nodes.json"
        guard FileManager.default.createFile(atPath: nodes, contents: Data(StorageServerStandIn.nodesFile(servers.descriptions).utf8)),
            let key = OnionKey(.random(count: OnionKey.byteCount), sodium: sodium)
        else { throw BenchError.disk }
        var configuration = BenchNode.configuration(.generate(), folder + "/data")
        configuration.session = SessionPush.Configuration(
            httpAddress: SocketAddress(host: "127.0.0.1", port: 0), onionKey: key, sodium: sodium
        ) { entries, receiver, logger, count in
            SubscriptionMonitor(
                .init(source: .file(nodes)), library: library, entries: entries, receiver: receiver, logger: logger, count: count)
        }
        let relay = BenchRelay()
        return try await BenchNode.withServer(configuration, gorush: posts, makeRelay: { _ in relay }) { server in
            try await Self.wait("storage servers connected") {
                server.sessionPort != nil && servers.figures.connections == Self.swarms.count
            }
            return try await body(server, key.publicKey)
        }
    }

    /// - Throws: ``BenchError`` when the condition does not hold within a minute.
    static func wait(_ step: String, _ condition: () -> Bool) async throws {
        let problem = "not within a minute: \(step); does another program use all cores?"
        try await waitUntil(.seconds(60), interval: .milliseconds(1), else: problem, condition)
    }
}

/// Accepts every notification at once, and counts them.
final class PostCount: NotificationPosting {
    private let state = Mutex((count: 0, last: UInt64(0)))

    var count: Int { state.withLock { $0.count } }
    /// The time of the last notification.
    var lastTime: UInt64 { state.withLock { $0.last } }

    func post(_ notifications: [Delivery.Notification]) async -> PostResult {
        let now = Clock.uptime()
        state.withLock { state in
            state.count += notifications.count
            state.last = now
        }
        return PostResult(outcome: .accepted, postedTokenCount: notifications.count, countedTokenCount: notifications.count)
    }
}
