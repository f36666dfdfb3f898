import NodeAPI
import Cluster
import NodeAssembly
import Core
import PushNode
import StorePostgreSQL
import WakuCrypto

/// Measures the total cost per message of several nodes with one identity. All nodes receive each message, and one of them handles it.
///
/// The nodes run in this process. The message rate is low enough that no node falls behind, since other nodes would take over its messages. Each
/// round measures all node counts, so that a machine that becomes busy affects them alike.
struct NodesBench: Sendable {
    private struct Spent {
        /// CPU time of this process per message.
        let microseconds: Double
        /// CPU time of the server's processes per message; nil when it can't be measured.
        let serverMicroseconds: Double?
        let unanswered: Int

        var sum: Double { microseconds + (serverMicroseconds ?? 0) }
    }

    private static let kinds: [MessageBench.Kind] = [.update, .query, .request]
    private static let nodeCounts = [1, 2, 3]
    private static let batchInterval = Duration.milliseconds(20)
    private static let warmUpCount = 200

    let settings: BenchSettings
    /// Messages per second.
    let rate: Double

    /// One result for each kind of message and number of nodes.
    ///
    /// - Throws: ``BenchError``, `StoreError`
    func run() async throws -> [BenchResult] {
        guard case .postgreSQL(let address) = settings.store else {
            throw BenchError(code: .unavailable, message: "several nodes need a PostgreSQL database: name one with --store")
        }
        var results: [BenchResult] = []
        for kind in Self.kinds {
            results += try await settings.withStore { folder, store in try await measure(kind, folder, store, address) }
        }
        return results
    }

    private func measure(
        _ kind: MessageBench.Kind, _ folder: String, _ store: StoreLocation, _ address: PostgreSQLAddress
    ) async throws -> [BenchResult] {
        settings.progress("\(kind.rawValue): registrants", 0)
        let identity = PrivateKey.generate()
        let maker = await QuestionMaker(kind, identity: identity, cores: settings.cores, stored: min(settings.storedCount, 2_000))
        try await BenchNode.seed(maker.clients, identity: identity, folder: folder, at: store)
        let count = max(Self.warmUpCount, Int(rate * settings.seconds))
        var spent: [Int: [Spent]] = [:]
        var made = 0
        for round in 0..<settings.rounds {
            for nodeCount in Self.nodeCounts {
                let done = Double(round * Self.nodeCounts.count + nodeCount - 1) / Double(settings.rounds * Self.nodeCounts.count)
                settings.progress("\(kind.rawValue): round \(round + 1), nodes: \(nodeCount)", done)
                let warmUp = await maker.make(Self.warmUpCount, after: made)
                let load = await maker.make(count, after: made + Self.warmUpCount)
                made += Self.warmUpCount + count
                let server = try await onThread { try SessionProcesses(at: address) }
                let cost = try await withNodes(nodeCount, identity, store) { nodes in
                    // Fills connections, caches and topic keys.
                    _ = try await feed(warmUp, to: nodes, server)
                    return try await feed(load, to: nodes, server)
                }
                spent[nodeCount, default: []].append(cost)
            }
        }
        return Self.nodeCounts.compactMap { nodeCount in
            guard let runs = spent[nodeCount], let single = spent[1] else { return nil }
            return result(kind, nodeCount, runs, comparedTo: single, messages: count * runs.count)
        }
    }

    private func result(
        _ kind: MessageBench.Kind, _ nodeCount: Int, _ runs: [Spent], comparedTo single: [Spent], messages: Int
    ) -> BenchResult {
        var result = BenchResult(name: "\(kind.rawValue), nodes: \(nodeCount)")
        let ratio = median(zip(runs, single).map { $0.sum / $1.sum })
        result.cpuMicroseconds = median(runs.map(\.microseconds))
        result.messages = messages
        result.unanswered = runs.reduce(0) { $0 + $1.unanswered }
        result.details = ["nodes": Double(nodeCount), "messagesPerSecond": rate, "cpuRatioToOneNode": ratio]
        var note = "at \(Int(rate)) messages a second all nodes together spend \(ratio.roundedToMeasure) times as much CPU as one"
        let servers = runs.compactMap(\.serverMicroseconds)
        if servers.count == runs.count {
            result.details["serverMicroseconds"] = median(servers)
            note += ", PostgreSQL's \(median(servers).roundedToMeasure) µs included"
        }
        result.note = nodeCount > 1 ? note : nil
        return result
    }

    // MARK: Nodes

    /// Runs `body` once the nodes have divided the work.
    private func withNodes<R: Sendable>(
        _ count: Int, _ identity: PrivateKey, _ store: StoreLocation, running: [BenchNode] = [],
        _ body: @escaping @Sendable ([BenchNode]) async throws -> R
    ) async throws -> R {
        guard running.count < count else {
            try await waitUntilShared(running)
            return try await body(running)
        }
        return try await settings.withFolder { folder in
            var configuration = BenchNode.configuration(identity, folder)
            configuration.store = store
            configuration.cluster = ClusterNode.Configuration(name: "bench-\(running.count + 1)")
            return try await BenchNode.running(configuration, gorush: PostingStandIn(latency: settings.gorushLatency)) { node in
                try await withNodes(count, identity, store, running: running + [node], body)
            }
        }
    }

    private func waitUntilShared(_ nodes: [BenchNode]) async throws {
        // Leases change hands every few seconds, and a loaded machine needs several of these periods.
        let (partitions, least) = (ClusterConfiguration().partitionCount, ClusterConfiguration().partitionCount / nodes.count - 1)
        let problem = "the nodes did not divide the work: is the machine too busy?"
        try await waitUntil(.seconds(120), interval: .milliseconds(20), else: problem) {
            let shares = nodes.map { $0.server.node.cluster.share }
            return shares.reduce(0, +) == partitions && shares.allSatisfy { $0 >= least }
        }
    }

    // MARK: Messages

    /// Feeds all messages to all nodes, each batch when it is due. All nodes get the same copies: they divide messages by the hash, of which the time is a
    /// part.
    private func feed(_ questions: [Question], to nodes: [BenchNode], _ server: SessionProcesses) async throws -> Spent {
        let size = max(1, Int(rate * (Self.batchInterval / .seconds(1))))
        let sentFrom = Timestamp.now()
        let batches = questions.chunks(of: size).enumerated().map { index, batch in
            batch.map { $0.message.sent(at: sentFrom + Self.batchInterval * index) }
        }
        func answers() -> Int { nodes.reduce(0) { $0 + $1.relay.answers } }
        let before = answers()
        let (cpu, serverTime) = (Clock.process(), try await onThread { try server.time() })
        let start = Instant.now
        await withTaskGroup { group in
            for node in nodes {
                group.addTask {
                    for (index, batch) in batches.enumerated() {
                        guard (try? await (start + Self.batchInterval * index).sleep()) != nil else { return }
                        await node.relay.deliver(batch)
                    }
                }
            }
        }
        let wanted = before + questions.count
        _ = try await waitForCount(wanted) { answers() }
        // The nodes' exchange about the last messages is part of the cost.
        try await Task.sleep(for: ClusterConfiguration().finishedInterval)
        let count = Double(max(1, questions.count))
        let serverEnd = try await onThread { try server.time() }
        let serverSpent = serverTime.flatMap { start in serverEnd.map { Double($0 - start) / 1_000 / count } }
        return Spent(
            microseconds: Double(Clock.process() - cpu) / 1_000 / count, serverMicroseconds: serverSpent,
            unanswered: max(0, wanted - answers()))
    }
}
