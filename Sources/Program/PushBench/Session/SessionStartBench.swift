import Foundation
import NodeAssembly
import Core
import SessionProtocol
import SessionServer
import Storage
import Synchronization
import WakuCrypto

extension SessionBench {
    /// The number of rows per transaction.
    private static let chunk = 10_000
    private static let body = 100

    /// The start of a node with many subscriptions: from the start of the process until all of them are read from the database and assigned to
    /// swarms, and the HTTP endpoints are served.
    func measureStart() async throws -> BenchResult {
        try await settings.withFolder { folder in
            let identity = PrivateKey.generate()
            let data = try BenchSettings.makeDataFolder(in: folder)
            // The memory baseline includes remnants of creating the database.
            let (before, began) = (ProcessMemory.residentBytes() ?? 0, Clock.uptime())
            try await makeDatabase(identity, data)
            let seconds = Double(Clock.uptime() - began) / 1e9
            settings.progress("session start: \(subscriptionCount) subscriptions are loaded", 1)
            // Storage servers that do not exist.
            let servers = (0..<Self.swarmCount).map {
                StorageServer(publicKey: randomBytes(32), ip: "127.0.0.1", port: 1, swarm: Self.swarm($0))
            }
            let start = try await measure(identity, data, nodes: try Self.writeNodes(servers, in: folder))

            let bytes = start.residentBytes - before
            var result = BenchResult(name: "session start with \(subscriptionCount) subscriptions")
            result.details = [
                "loadMilliseconds": start.milliseconds, "loadCPUMilliseconds": start.cpuMilliseconds, "loadBytes": Double(bytes),
                "databaseBytes": Double(try BareDatabase.byteCount(path: DataFolder.databasePath(in: data))),
                "subscriptionsMadePerSecond": Double(subscriptionCount) / seconds,
            ]
            result.residentBytes = start.residentBytes
            result.messages = start.loaded
            result.unanswered = subscriptionCount - start.loaded
            result.note =
                "read and assigned to swarms in \(Int(start.milliseconds)) ms (\(Int(start.cpuMilliseconds)) ms of CPU), \(bytes >> 20) MiB"
            return result
        }
    }

    // MARK: Database

    private func makeDatabase(_ identity: PrivateKey, _ data: String) async throws {
        let store = try NodeAssembly.store(in: data, of: identity)
        let subscriptions = Subscriptions(store.sealer)
        let rules = SubscriptionRules(availableServices: Set(PushService.allCases))
        let now = Int64(Date().timeIntervalSince1970)
        for start in stride(from: 0, to: subscriptionCount, by: Self.chunk) {
            try Task.checkCancellation()
            settings.progress("session start: \(subscriptionCount) subscriptions", Double(start) / Double(subscriptionCount))
            let requests = (start..<min(start + Self.chunk, subscriptionCount)).compactMap { Self.subscription($0, at: now) }
            let commands = requests.chunks(of: Self.body).map { subscriptions.apply(Array($0), rules, at: now) { _ in nil } }
            for result in await store.commitEach(commands) { _ = try result.get() }
        }
        try store.close()
    }

    /// A subscription of a separate account. Its signature is not checked.
    private static func subscription(_ number: Int, at now: Int64) -> SessionRequest? {
        guard let account = AccountID([AccountID.sessionPrefix] + randomBytes(32)),
            let key = try? Ed25519PublicKey(parsing: randomBytes(32))
        else { return nil }
        let authority = SignedAuthority(
            account: account, sessionKey: key, delegation: .none, signedAt: now, signature: Confidential(randomBytes(64)))
        return .subscribe(
            SubscriptionForm(
                authority: authority, namespaces: [-400, -10, 0, 11], wantsData: true,
                device: SubscriberDevice(service: .firebase, token: "bench-device-\(number)-" + hexString(randomBytes(64))),
                encryptionKey: .random()))
    }

    // MARK: Start

    private struct Start {
        let milliseconds: Double
        let cpuMilliseconds: Double
        let residentBytes: Int
        let loaded: Int
    }

    private func measure(_ identity: PrivateKey, _ data: String, nodes: String) async throws -> Start {
        let made = Mutex<SubscriptionMonitor?>(nil)
        var configuration = BenchNode.configuration(identity, data)
        configuration.session = try session(nodes: nodes, made: { monitor in made.withLock { $0 = monitor } })
        let (cpu, start) = (Clock.process(), Clock.uptime())
        return try await BenchNode.running(configuration, gorush: PostingStandIn(latency: .zero)) { [subscriptionCount] node in
            try await Self.wait("all subscriptions loaded") {
                let figures = made.withLock(\.self)?.figures
                return node.server.sessionPort != nil && figures?.subscriptions == subscriptionCount
                    && figures?.knownSwarms == Self.swarmCount
            }
            return Start(
                milliseconds: Double(Clock.uptime() - start) / 1e6, cpuMilliseconds: Double(Clock.process() - cpu) / 1e6,
                residentBytes: ProcessMemory.residentBytes() ?? 0, loaded: made.withLock(\.self)?.figures.subscriptions ?? 0)
        }
    }
}
