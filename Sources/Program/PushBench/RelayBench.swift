import Foundation
import LibP2P
import Core
import Waku
import WakuP2P

/// Messages of 1 KiB from this process to another by gossipsub, over Noise and yamux on a loopback socket; and to py-libp2p, if `LIBP2P_PYTHON` names
/// a Python interpreter that has it.
struct RelayBench: Sendable {
    private static let payloadByteCount = 1024
    private static let topic = PubsubTopic.statusDefault
    /// Bytes in flight to the peer: less than the limit of a peer's queue.
    private static let window = 2 << 20
    private static let latencyRate = 1000.0
    private static let script = "Tests/Interop/py_waku_relay.py"

    let settings: BenchSettings

    func run() async throws -> [BenchResult] {
        try await settings.withFolder { folder in
            var results: [BenchResult] = []
            let sink = try BenchChild(["run", "--relay-sink"], output: folder + "/sink")
            try await withRelay(to: try await sink.line { $0.hasPrefix("/") ? $0 : nil }) { relay in
                results.append(try await rate(relay, sink))
                results.append(try await latency(relay, sink))
            }
            sink.end()
            if let python = ProcessInfo.processInfo.environment["LIBP2P_PYTHON"], FileManager.default.fileExists(atPath: Self.script) {
                results.append(try await others(python, folder))
            }
            return results
        }
    }

    private func withRelay(to address: String, _ body: (P2PRelay) async throws -> Void) async throws {
        let configuration = P2PRelay.Configuration(key: .generate(), peers: [try Multiaddr(address)])
        let relay = P2PRelay(configuration: configuration, logger: .quiet)
        try await relay.running {
            try await waitUntil(.seconds(60), else: "the other process did not connect") { relay.state == .attached }
            try await body(relay)
        }
    }

    private func send(_ mark: RelayBenchSink.Mark, by relay: P2PRelay) async throws {
        let payload = mark.bytes + [UInt8](repeating: 7, count: Self.payloadByteCount - RelayBenchSink.Mark.byteCount)
        let message = WakuMessage(
            payload: payload, contentTopic: ContentTopic(rawValue: "/waku/1/0x00000000/rfc26"), timestamp: .now())
        while relay.queuedByteCount > Self.window { try await Task.sleep(for: .microseconds(200)) }
        try await relay.publish(message, on: Self.topic)
    }

    /// Measures the rate at which the other process accepts messages.
    private func rate(_ relay: P2PRelay, _ sink: BenchChild) async throws -> BenchResult {
        let count = Int(max(settings.seconds * 20_000, 200))
        // Warm-up with a tenth of the messages, so that windows and caches are in steady state.
        for number in 0..<count / 10 { try await send(.init(run: 0, isOver: false, count: UInt64(number)), by: relay) }
        var rounds: [BenchResult] = []
        for round in 1...settings.rounds {
            settings.progress("relay", Double(round) / Double(settings.rounds + 1))
            let (began, processor) = (Clock.uptime(), Clock.process())
            for number in 0..<count { try await send(.init(run: UInt8(round), isOver: false, count: UInt64(number)), by: relay) }
            let report = try await end(UInt8(round), relay, sink)
            var result = BenchResult(name: "relay to another process")
            result.rate = Double(report.count) / (Double(report.lastAt - began) / 1e9)
            let own = Double(Clock.process() - processor) / 1000 / Double(count)
            let others = Double(report.processorNanoseconds) / 1000 / Double(max(report.count, 1))
            result.cpuMicroseconds = own + others
            result.details = ["senderMicroseconds": own, "receiverMicroseconds": others]
            result.messages = count
            result.unanswered = count - report.count
            result.residentBytes = report.residentBytes
            rounds.append(result)
        }
        var median = rounds.sorted { ($0.rate ?? 0) < ($1.rate ?? 0) }[rounds.count / 2]
        median.unanswered = rounds.reduce(0) { $0 + ($1.unanswered ?? 0) }
        median.note = "1 KiB through Noise, yamux and gossip; CPU µs is that of sender and receiver"
        return median
    }

    private func latency(_ relay: P2PRelay, _ sink: BenchChild) async throws -> BenchResult {
        let count = Int(max(Self.latencyRate * max(settings.seconds * 4, 0.2), 100))
        let run: UInt8 = 255
        let began = ContinuousClock.now
        settings.progress("relay: latencies", 0.9)
        for number in 0..<count {
            let due = began + .seconds(Double(number) / Self.latencyRate)
            if ContinuousClock.now < due { try await Task.sleep(until: due, tolerance: .zero, clock: .continuous) }
            try await send(.init(run: run, isOver: false, count: UInt64(number)), by: relay)
        }
        let report = try await end(run, relay, sink)
        var result = BenchResult(name: "relay at 1,000 a second")
        var latencies = LatencyHistogram()
        for latency in report.latencies { latencies.record(nanoseconds: latency) }
        result.latencies = latencies
        result.latencyRate = Self.latencyRate
        result.messages = count
        result.unanswered = count - report.count
        return result
    }

    /// Requests the report of a run with a message after its last one.
    private func end(_ run: UInt8, _ relay: P2PRelay, _ sink: BenchChild) async throws -> RelayBenchSink.Report {
        try await send(.init(run: run, isOver: true, count: 0), by: relay)
        return try await sink.line { line in
            guard let report = try? JSONDecoder().decode(RelayBenchSink.Report.self, from: Data(line.utf8)), report.run == run else {
                return nil
            }
            return report
        }
    }

    /// Measures the rate to a py-libp2p node, which counts messages.
    private func others(_ python: String, _ folder: String) async throws -> BenchResult {
        settings.progress("relay: py-libp2p", 0.95)
        _ = FileManager.default.createFile(atPath: folder + "/commands", contents: nil)
        let node = try BenchChild(
            python, [Self.script, folder + "/commands", Self.topic.rawValue, "--count"], output: folder + "/python")
        defer { node.end() }
        let address = try await node.line { $0.hasPrefix("address ") ? String($0.dropFirst(8)) : nil }
        let count = Int(max(settings.seconds * 1000, 100))
        var result = BenchResult(name: "relay to py-libp2p")
        try await withRelay(to: address) { relay in
            let began = Clock.uptime()
            for number in 0..<count { try await send(.init(run: 1, isOver: false, count: UInt64(number)), by: relay) }
            let processor = try await node.line { line -> Double? in
                let words = line.split(separator: " ")
                return words.count == 3 && words[0] == "counted" && Int(words[1]) == count ? Double(words[2]) : nil
            }
            result.rate = Double(count) / (Double(Clock.uptime() - began) / 1e9)
            result.cpuMicroseconds = processor * 1e6 / Double(count)
            result.messages = count
            result.unanswered = 0
        }
        result.note = "the same messages, received by py-libp2p; CPU µs is the receiver's"
        return result
    }
}
