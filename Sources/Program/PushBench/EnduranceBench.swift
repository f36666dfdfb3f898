import StatusProtocol
import Core
import WakuCrypto

/// A mix of all kinds of messages for a long time, at half of the maximum rate or a given one. Memory and latencies should not grow.
///
/// Messages are generated on the same cores while others are handled.
struct EnduranceBench: Sendable {
    /// The kinds of ten messages.
    static let mix: [MessageBench.Kind] = [
        .request, .query, .update, .request, .query, .stale, .request, .query, .update, .request,
    ]

    /// The results of an interval.
    struct Interval: Sendable, Encodable {
        let seconds: Double
        /// Answers per second.
        let rate: Double
        let p50Microseconds: Double?
        let p99Microseconds: Double?
        let residentBytes: Int?
    }

    let settings: BenchSettings
    let duration: Duration
    /// Messages per second; nil for half of the maximum rate.
    var rate: Double? = nil
    /// Called at the end of each interval.
    let report: @Sendable (Interval) -> Void

    func run() async throws -> [BenchResult] {
        try await settings.withFolder { folder in
            settings.progress("endurance: registrants", 0)
            let identity = PrivateKey.generate()
            let mixer = await Mixer(identity: identity, cores: settings.cores)
            try await BenchNode.seed(mixer.clients, identity: identity, folder: folder)
            return try await BenchNode.running(
                identity: identity, folder: folder, gorush: PostingStandIn(latency: settings.gorushLatency)
            ) { node in [try await endure(node.relay, mixer)] }
        }
    }

    private func endure(_ relay: BenchRelay, _ mixer: Mixer) async throws -> BenchResult {
        var made = 0
        func make(_ count: Int) async -> [Question] {
            defer { made += count }
            return await mixer.make(count, after: made)
        }
        // Fills caches and topic keys.
        _ = try await FullSpeed.measure(await make(1_000), relay: relay, batch: settings.batch)
        let trial = try await FullSpeed.measure(await make(max(200, Int(2_000 * settings.seconds))), relay: relay, batch: settings.batch)
        var result = BenchResult(name: "endurance")
        result.unanswered = trial.unanswered
        guard trial.rate > 0 else { return result }

        let rate = rate ?? trial.rate / 2
        // Small chunks, so that messages that wait to be sent don't dominate memory.
        let chunk = max(1, Int(rate * min(1, duration.seconds / 4)))
        let length = min(max(duration.seconds / 30, 1), 60)
        var intervals: [Interval] = []
        var (all, current) = (LatencyHistogram(), LatencyHistogram())
        var questions = await make(chunk)
        let start = Clock.uptime()
        var began = start
        while true {
            async let next = mixer.make(chunk, after: made)
            let loop = try await OpenLoop.measure(questions, rate: rate, relay: relay)
            current.add(loop.latencies)
            result.messages = (result.messages ?? 0) + loop.count
            result.unanswered = (result.unanswered ?? 0) + loop.unanswered
            questions = await next
            made += chunk

            let now = Clock.uptime()
            let (elapsed, isOver) = (Double(now - start) / 1e9, Double(now - start) / 1e9 >= duration.seconds)
            settings.progress("endurance", elapsed / duration.seconds)
            guard isOver || Double(now - began) / 1e9 >= length else { continue }
            let interval = Interval(
                seconds: elapsed, rate: Double(current.count) * 1e9 / Double(now - began), p50Microseconds: current.percentile(0.5),
                p99Microseconds: current.percentile(0.99), residentBytes: ProcessMemory.residentBytes())
            intervals.append(interval)
            report(interval)
            all.add(current)
            (current, began) = (LatencyHistogram(), now)
            if isOver { break }
        }
        result.rate = median(intervals.map(\.rate))
        result.latencies = all
        result.latencyRate = rate
        result.residentBytes = intervals.last?.residentBytes
        result.intervals = intervals
        result.describeTrend()
        return result
    }
}

/// Generates the mix.
private struct Mixer: Sendable {
    private let makers: [MessageBench.Kind: QuestionMaker]
    let clients: [BenchClient]

    init(identity: PrivateKey, cores: Int) async {
        var makers: [MessageBench.Kind: QuestionMaker] = [:]
        for kind in Set(EnduranceBench.mix) { makers[kind] = await QuestionMaker(kind, identity: identity, cores: cores) }
        self.makers = makers
        clients = makers.values.flatMap(\.clients)
    }

    /// Generates on one core only, while the node uses the others.
    func make(_ count: Int, after start: Int) async -> [Question] {
        await makeInParallel(count, cores: 1) { offset in
            let number = start + offset
            let kind = EnduranceBench.mix[number % EnduranceBench.mix.count]
            guard let maker = makers[kind] else { preconditionFailure("the mix has no maker for \(kind)") }
            return maker.question(number)
        }
    }
}

extension BenchResult {
    /// Compares memory and latency: medians of the first half, in which caches fill, and of the second.
    mutating func describeTrend() {
        let middle = intervals.count / 2
        let halves = [intervals.prefix(middle), intervals.suffix(middle)]
        let memory = halves.map { half in median(half.compactMap(\.residentBytes).map(Double.init)) }
        let latency = halves.map { half in median(half.compactMap(\.p50Microseconds)) }
        guard middle > 0 else { return }
        (details["residentBytesFirstHalf"], details["residentBytesSecondHalf"]) = (memory[0], memory[1])
        (details["p50MicrosecondsFirstHalf"], details["p50MicrosecondsSecondHalf"]) = (latency[0], latency[1])
        // With fewer points, the slope shows the caches rather than a trend.
        let later = intervals.suffix(middle)
        if let first = later.first, let last = later.last, last.seconds - first.seconds >= 120 {
            let points = later.compactMap { interval in interval.residentBytes.map { (x: interval.seconds, y: Double($0)) } }
            details["residentBytesPerHour"] = slope(points).map { $0 * 3600 }
        }
        note =
            "from the first half to the second, memory went from \(Int(memory[0]) >> 20) to \(Int(memory[1]) >> 20) MiB, "
            + "p50 from \(Int(latency[0])) to \(Int(latency[1])) µs"
    }
}
