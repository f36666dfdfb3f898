import Foundation
import LibP2P
import Logging
import PushClient
import Core
import TestSupport
import Testing
import WakuCrypto
import WakuP2P

/// Three push servers as processes, each connected with the others over libp2p, and clients of the library at all three.
@Suite(.timeLimit(.minutes(5)))
struct ThreeServersTests {
    private struct Server {
        let identity: KeyFile
        let nodeKeyPath: String
        let data: String
        let address: Multiaddr

        init(_ name: String, in folder: TemporaryFolder) throws {
            identity = try KeyFile(in: folder, name + ".key")
            nodeKeyPath = folder.path + "/" + name + ".node.key"
            data = folder.path + "/" + name
            let key = NodeKey.generate()
            try write(key.encoded().withBytes { hexString($0) } + "\n", to: nodeKeyPath)
            address = try Multiaddr("/ip4/127.0.0.1/tcp/\(try freePort())/p2p/\(key.peerID)")
        }

        var key: PublicKey { identity.key.publicKey }

        func start(among servers: [Server], gorush: String) async throws -> Daemon {
            let others = servers.filter { $0.data != data }.flatMap { ["--relay", $0.address.description] }
            let listen = address.description.split(separator: "/p2p/")[0]
            return try await Daemon.start(
                [
                    "--identity", identity.path, "--data", data, "--gorush", gorush, "--node-key", nodeKeyPath, "--listen", String(listen),
                    "--exempt-network", "127.0.0.0/8",
                ] + others)
        }
    }

    private let folder: TemporaryFolder
    private let servers: [Server]
    private let gorush: RawHTTPServer

    init() throws {
        let folder = try TemporaryFolder()
        self.folder = folder
        servers = try ["a", "b", "c"].map { try Server($0, in: folder) }
        gorush = try RawHTTPServer { GorushStandIn.reply(to: $0, status: 200) }
    }

    private func relay() -> P2PRelay {
        P2PRelay(
            configuration: P2PRelay.Configuration(key: .generate(), peers: servers.map(\.address)),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    /// A client that is attached to all servers while `body` runs.
    private func withClient(_ body: @Sendable @escaping (StatusPushClient) async throws -> Void) async throws {
        let relay = relay()
        let client = try await StatusPushClient.open(identity: .generate(), relays: [relay], store: MemoryClientStore())
        let running = Task { await client.run() }
        let result: Result<Void, any Error>
        do {
            try await eventually { relay.gossipPeers.count == 3 }
            try await body(client)
            result = .success(())
        } catch {
            result = .failure(error)
        }
        running.cancel()
        await running.value
        await relay.close()
        try result.get()
    }

    private func postCount(of messageID: [UInt8]) -> Int {
        gorush.requests.count { String(decoding: $0.body, as: UTF8.self).contains(hexString(messageID)) }
    }

    /// Has Bob notified of so many messages at once; each arrives.
    ///
    /// - Parameter meanwhile: Runs while they are in progress.
    /// - Returns: The servers that notified.
    private func notify(
        _ bob: PublicKey, by alice: StatusPushClient, count: Int = 4, meanwhile: () async -> Void = {}
    ) async throws -> Set<PublicKey> {
        let messageIDs = (0..<count).map { _ in randomBytes(32) }
        async let outcomes = withThrowingTaskGroup(of: [DeviceOutcome].self) { group in
            for id in messageIDs {
                group.addTask {
                    try await alice.notify(
                        OutgoingNotification(messageID: id, chatID: "family", kind: .message, content: id, recipients: [.init(bob)]))
                }
            }
            return try await group.reduce(into: [DeviceOutcome]()) { $0 += $1 }
        }
        await meanwhile()
        let results = try await outcomes.map(\.result)
        #expect(results.count == count)
        for id in messageIDs { #expect(postCount(of: id) >= 1) }
        return Set(
            results.compactMap { result in
                guard case .notified(let server) = result else {
                    Issue.record("\(result)")
                    return nil
                }
                return server
            })
    }

    private func register(_ bob: StatusPushClient, _ profile: DeviceProfile, version: UInt64) async throws {
        // A server that is just coming back may miss the first one, and gets it again after 30 s.
        let states = try await bob.register(profile, with: servers.map { PushServer(key: $0.key) }, timeout: .seconds(90))
        #expect(states == Dictionary(uniqueKeysWithValues: servers.map { ($0.key, .registered(version: version)) }))
    }

    @Test func oneOfThreeServersIsKilledAndBroughtBack() async throws {
        defer { gorush.stop() }
        var daemons: [Daemon] = []
        for daemon in try await starting() { daemons.append(daemon) }
        let running = daemons
        try await withClient { bob in
            try await withClient { alice in
                bob.setReceiving(true)
                alice.setSending(true)
                // There is no store: this finds nothing, and she receives Bob's advertisement later.
                _ = try? await alice.discover(bob.publicKey, timeout: .milliseconds(100))
                var profile = DeviceProfile(platform: .apn, deviceToken: DeviceToken("bobs-token"), apnTopic: "im.status.ethereum")
                try await register(bob, profile, version: 1)
                try await eventually { Set(alice.devices(of: bob.publicKey).map(\.server)) == Set(servers.map(\.key)) }
                let first = try #require(try await notify(bob.publicKey, by: alice).first)

                // The server that notified is killed with messages in progress: others notify.
                let index = try #require(servers.firstIndex { $0.key == first })
                _ = try await notify(bob.publicKey, by: alice) {
                    running[index].process.send(SIGKILL)
                    _ = await running[index].process.status
                }
                #expect(try await notify(bob.publicKey, by: alice).contains(first) == false)

                let back = try await servers[index].start(among: servers, gorush: gorush.url)
                // It still has the registration, and accepts the next one.
                _ = try await notify(bob.publicKey, by: alice)
                profile.mutedChats = ["work"]
                try await register(bob, profile, version: 2)
                _ = try await notify(bob.publicKey, by: alice)
                for daemon in running.enumerated().filter({ $0.offset != index }).map(\.element) + [back] {
                    let stopped = await daemon.stop()
                    #expect(stopped.status == 0, "\(stopped.errors.suffix(2000))")
                }
            }
        }
    }

    /// Each is ready once it is connected with another.
    private func starting() async throws -> [Daemon] {
        try await withThrowingTaskGroup(of: (Int, Daemon).self) { group in
            for (index, server) in servers.enumerated() {
                group.addTask { (index, try await server.start(among: servers, gorush: gorush.url)) }
            }
            return try await group.reduce(into: [(Int, Daemon)]()) { $0.append($1) }.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }
}
