import NodeAssembly
import NodeMetrics
import PushNode
import Core
import StatusProtocol
import StatusServer
import WakuCrypto

/// The latency of the first query about each registrant after the topic keys were derived ahead, and the cost of deriving keys during a flood of
/// registrations, which should be none, since only idle time is used.
struct FirstQueryBench: Sendable {
    /// First queries per second.
    private static let rate = 200.0

    let settings: BenchSettings
    let registrantCount: Int

    func run() async throws -> [BenchResult] {
        [try await measureQueries(), try await measureFlood()]
    }

    // MARK: Queries

    private func measureQueries() async throws -> BenchResult {
        settings.progress("first queries: messages", 0)
        let identity = PrivateKey.generate()
        let clients = await makeInParallel(registrantCount, cores: settings.cores) { _ in BenchClient(deviceToken: DeviceToken("device")) }
        let registrations = await makeInParallel(clients.count, cores: settings.cores) {
            clients[$0].registering(version: 1, server: identity.publicKey)
        }
        let queries = await makeInParallel(clients.count, cores: settings.cores) {
            clients[$0].asking(topicKey: KeyDerivation.topicKey(StatusTopics.query(clients[$0].keyHash)))
        }
        return try await withNode(identity, derivesAhead: true) { [settings, registrantCount] bench in
            let node = bench.server.node
            _ = try await FullSpeed.measure(registrations, relay: bench.relay, batch: settings.batch)
            let registered = Clock.uptime()
            while node.counters.count(.topicKeyDerivedAhead) < registrantCount {
                let done = Double(node.counters.count(.topicKeyDerivedAhead)) / Double(registrantCount)
                settings.progress("first queries: keys", done)
                guard Clock.uptime() - registered < 600_000_000_000 else {
                    throw BenchError(code: .unavailable, message: "no keys were derived: does another program use all cores?")
                }
                try await Task.sleep(for: .milliseconds(50))
            }
            let seconds = Double(Clock.uptime() - registered) / 1e9
            settings.progress("first queries: latencies", 0.9)
            var result = BenchResult(name: "first query, key derived ahead")
            result.add(try await OpenLoop.measure(queries, rate: Self.rate, relay: bench.relay))
            result.details["registrants"] = Double(registrantCount)
            result.details["secondsUntilDerived"] = seconds
            result.note = "all keys were derived \((seconds * 10).rounded() / 10) s after the last of \(registrantCount) registrations"
            return result
        }
    }

    // MARK: Flood

    private func measureFlood() async throws -> BenchResult {
        var rates: [Bool: [Double]] = [:]
        var result = BenchResult(name: "registration new, deriving ahead")
        let count = max(256, Int(2_000 * settings.seconds))
        for round in 0..<settings.rounds {
            // The order alternates, so that a machine that becomes slower favours neither.
            for derivesAhead in round.isMultiple(of: 2) ? [false, true] : [true, false] {
                settings.progress("first queries: flood", Double(round) / Double(settings.rounds))
                let identity = PrivateKey.generate()
                let questions = await makeInParallel(count, cores: settings.cores) { _ in
                    BenchClient(deviceToken: DeviceToken("device")).registering(version: 1, server: identity.publicKey)
                }
                let speed = try await withNode(identity, derivesAhead: derivesAhead) { [settings] bench in
                    try await FullSpeed.measure(questions, relay: bench.relay, batch: settings.batch)
                }
                rates[derivesAhead, default: []].append(speed.rate)
                if derivesAhead {
                    result.messages = (result.messages ?? 0) + speed.count
                    result.unanswered = (result.unanswered ?? 0) + speed.unanswered
                }
            }
        }
        let (with, without) = (median(rates[true] ?? []), median(rates[false] ?? []))
        result.rate = with
        result.details["rateWithoutDerivingAhead"] = without
        result.details["ratioToRateWithout"] = without > 0 ? with / without : 0
        result.note = "\(Int((with / max(without, 1) * 100).rounded())) % of the rate without deriving ahead"
        return result
    }

    private func withNode<R: Sendable>(
        _ identity: PrivateKey, derivesAhead: Bool, _ body: @escaping @Sendable (BenchNode) async throws -> R
    ) async throws -> R {
        try await settings.withFolder { folder in
            var configuration = BenchNode.configuration(identity, folder)
            if derivesAhead { configuration.deriveAheadLimit = 10_000 }
            return try await BenchNode.running(configuration, gorush: PostingStandIn(latency: settings.gorushLatency), body)
        }
    }
}
