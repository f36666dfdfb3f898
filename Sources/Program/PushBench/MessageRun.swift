/// The rounds of one kind of message, with measurements of the floor in between.
struct MessageRun {
    let kind: MessageBench.Kind
    let settings: BenchSettings
    let meter: PrimitiveMeter
    let maker: QuestionMaker
    let relay: BenchRelay
    private(set) var made = 0

    mutating func measure() async throws -> [BenchResult] {
        let name = kind.rawValue + settings.store.resultSuffix
        settings.progress("\(name): floor", 0)
        var measured = try await rounds(of: kind.floor)
        let first = kind == .query ? try await firstQueries() : nil
        let count = max(32, measured.count(for: settings.seconds, cores: settings.cores))
        // Warm-up of caches and pools, not measured.
        _ = try await fullSpeed(min(count, 256))
        for number in 0..<settings.rounds {
            settings.progress("\(name): round \(number + 1)", Double(number + 1) / Double(settings.rounds + 3))
            try await measured.add(try await fullSpeed(count))
        }
        var result = BenchResult(name: name)
        result.add(measured, store: settings.store)
        if let rate = result.rate, rate > 0 {
            settings.progress("\(name): a quarter of the rate", Double(settings.rounds + 1) / Double(settings.rounds + 3))
            let quarter = try await openLoop(max(32, Int(rate / 4 * settings.seconds)), rate: rate / 4)
            settings.progress("\(name): latencies", Double(settings.rounds + 2) / Double(settings.rounds + 3))
            let half = try await openLoop(max(settings.latencyCount, Int(rate / 2 * settings.seconds)), rate: rate / 2)
            result.cpuMicrosecondsAtQuarter = quarter.cpuMicroseconds
            result.cpuMicrosecondsAtHalf = half.cpuMicroseconds
            result.add(half)
        }
        result.residentBytes = ProcessMemory.residentBytes()
        return [result] + (first.map { [$0] } ?? [])
    }

    // MARK: Feeding

    private mutating func make(_ count: Int) async -> [Question] {
        defer { made += count }
        return await maker.make(count, after: made)
    }

    private mutating func fullSpeed(_ count: Int) async throws -> FullSpeed {
        try await FullSpeed.measure(await make(count), relay: relay, batch: settings.batch)
    }

    private mutating func openLoop(_ count: Int, rate: Double) async throws -> OpenLoop {
        try await OpenLoop.measure(await make(count), rate: rate, relay: relay)
    }

    /// The first query on each topic, which includes deriving the key.
    private mutating func firstQueries() async throws -> BenchResult {
        var measured = try await rounds(of: Floor(items: kind.floor.items + [Floor.Item(.topicKey, "key of the topic")]))
        try await measured.add(try await fullSpeed(maker.clients.count))
        var result = BenchResult(name: "query, first on its topic" + settings.store.resultSuffix)
        result.add(measured, store: settings.store)
        return result
    }

    // MARK: Floor

    private func rounds(of floor: Floor) async throws -> FloorRounds {
        try await FloorRounds { [meter, settings] in
            floor.measurement(try await meter.costs(of: floor.primitives, cores: settings.cores), store: settings.store)
        }
    }
}
