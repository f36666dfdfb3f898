import Core
import Foundation
import LibP2P
import Waku
import WakuCrypto
import WakuP2P
import WakuPushCommands

/// The traffic of a shard on which no message is for the node, from 1 and 5 peers of its mesh: `waku-push serve` as a process, its peers in another.
///
/// Every peer sends every message, as in a mesh, so that the node receives each as often as it has peers, forwards it, and drops it after the look-up
/// of its topic. CPU time, context switches and memory are those of the node.
struct ShardBench: Sendable {
    private static let peerCounts = [1, 5]
    private static let rates = [100.0, 500, 1000]
    private static let gossip = "waku_push_relay_gossip_messages_total"

    let settings: BenchSettings
    let rate: Double?

    func run() async throws -> [BenchResult] {
        let rates = rate.map { [$0] } ?? Self.rates
        let loads = Self.peerCounts.flatMap { peers in rates.map { (peers: peers, rate: $0) } }
        var results: [BenchResult] = []
        for (index, load) in loads.enumerated() {
            settings.progress("shard, \(load.peers) peers, \(Int(load.rate))/s", Double(index) / Double(loads.count))
            results.append(try await settings.withFolder { try await measure(load.peers, load.rate, $0) })
        }
        return results
    }

    private func measure(_ peers: Int, _ rate: Double, _ folder: String) async throws -> BenchResult {
        let identityFile = try SpawnedNode.writeIdentity(.generate(), in: folder)
        let mesh = try BenchChild(["run", "--shard-peers", "\(peers)", "--rate", "\(rate)"], output: folder + "/mesh")
        defer { mesh.end() }
        let addresses = try await mesh.line { $0.hasPrefix("/") ? $0.split(separator: " ").map(String.init) : nil }
        let node = try SpawnedNode(identityFile: identityFile, folder: folder + "/data", relays: addresses)
        try await node.waitUntilReady(limit: .seconds(60))

        let accepted = Self.gossip + "{result=\"accepted\"}"
        // All meshes have formed after a few heartbeats, and windows and caches are warm.
        try await Task.sleep(for: .seconds(max(3, settings.seconds)))
        let start = (count: try await node.metric(accepted), usage: node.usage, time: Clock.uptime())
        try await Task.sleep(for: .seconds(max(2, settings.seconds * Double(settings.rounds))))
        let end = (usage: node.usage, time: Clock.uptime(), count: try await node.metric(accepted))
        let count = end.count - start.count
        guard count > 0 else { throw BenchError(code: .unavailable, message: "the node received no message of the shard") }

        var result = BenchResult(name: "shard: \(peers) peer\(peers == 1 ? "" : "s"), \(Int(rate))/s")
        result.rate = count * 1e9 / Double(end.time - start.time)
        result.cpuMicroseconds = Double(end.usage.cpuNanoseconds - start.usage.cpuNanoseconds) / 1000 / count
        result.residentBytes = node.residentBytes
        result.messages = Int(count)
        let switches = Double(end.usage.contextSwitches - start.usage.contextSwitches) / count
        result.details = ["contextSwitches": switches]
        result.note = "\((switches * 100).rounded() / 100) context switches a message"
        await node.stop()
        return result
    }
}

/// The peers of ``ShardBench`` in one process: each sends the same messages of 600 bytes on topics of nobody, at one rate, until it is terminated.
struct ShardPeers: Sendable {
    let count: Int
    let rate: Double

    /// Prints the peers' addresses on one line, then sends.
    func run() async throws {
        var relays: [P2PRelay] = []
        for _ in 0..<count {
            let configuration = P2PRelay.Configuration(key: .generate(), listenAddresses: [try Multiaddr("/ip4/127.0.0.1/tcp/0")])
            let relay = P2PRelay(configuration: configuration, logger: .quiet)
            try await relay.listen()
            relays.append(relay)
        }
        Output.line(relays.compactMap { $0.listenAddresses.first?.description }.joined(separator: " "))
        try await withThrowingTaskGroup(of: Void.self) { [relays] group in
            for relay in relays { group.addTask { await relay.run { _ in } } }
            group.addTask { try await send(by: relays) }
            try await group.waitForAll()
        }
    }

    private func send(by relays: [P2PRelay]) async throws {
        let began = ContinuousClock.now
        for number in 0... {
            let due = began + .seconds(Double(number) / rate)
            if ContinuousClock.now < due { try await Task.sleep(until: due, tolerance: .zero, clock: .continuous) }
            let message = WakuMessage(
                payload: randomBytes(600), contentTopic: ContentTopic(TopicTag(rawValue: .random(in: 0 ... .max))), timestamp: .now())
            // Fails while the peer has no connection yet.
            for relay in relays { _ = try? await relay.publish(message, on: .statusDefault) }
        }
    }
}
