/// The rounds of one kind of message, with measurements of the floor in between.
struct MessageRun {
    let kind: MessageBench.Kind
    let settings: BenchSettings
    let meter: PrimitiveMeter
    let maker: QuestionMaker
    let relay: BenchRelay
    private var made = 0
    private var floors: [[Primitive: FloorCost]] = []

    init(kind: MessageBench.Kind, settings: BenchSettings, meter: PrimitiveMeter, maker: QuestionMaker, relay: BenchRelay) {
        self.kind = kind
        self.settings = settings
        self.meter = meter
        self.maker = maker
        self.relay = relay
    }

    mutating func measure() async throws -> [BenchResult] {
        let name = kind.rawValue + settings.store.resultSuffix
        settings.progress("\(name): floor", 0)
        let before = try await floor()
        let first = kind == .query ? try await firstQueries() : nil
        let count = max(32, Int(before.rate(cores: settings.cores) * settings.seconds))
        // Warm-up of caches and pools, not measured.
        _ = try await fullSpeed(min(count, 256))

        var rounds: [FullSpeed] = []
        var ratios: [Double] = []
        var floorBefore = before
        for number in 0..<settings.rounds {
            settings.progress("\(name): round \(number + 1)", Double(number + 1) / Double(settings.rounds + 2))
            let round = try await fullSpeed(count)
            let floorAfter = try await floor()
            rounds.append(round)
            ratios.append(2 * round.rate / (floorBefore.rate(cores: settings.cores) + floorAfter.rate(cores: settings.cores)))
            floorBefore = floorAfter
        }

        var result = BenchResult(name: name)
        result.add(rounds: rounds)
        result.ratioToFloor = median(ratios)
        result.describe(kind.floor, costs: floors, cores: settings.cores, store: settings.store)
        settings.progress("\(name): latencies", Double(settings.rounds + 1) / Double(settings.rounds + 2))
        if let rate = result.rate, rate > 0 {
            let questions = await make(max(32, Int(rate / 2 * settings.seconds)))
            result.add(try await OpenLoop.measure(questions, rate: rate / 2, relay: relay))
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

    /// The first query on each topic, which includes deriving the key.
    private mutating func firstQueries() async throws -> BenchResult {
        let floor = Floor(items: kind.floor.items + [Floor.Item(.topicKey, "key of the topic")])
        let costs = try await meter.costs(of: floor.primitives, cores: settings.cores)
        let speed = try await fullSpeed(maker.clients.count)
        var result = BenchResult(name: "query, first on its topic" + settings.store.resultSuffix)
        result.add(rounds: [speed])
        result.describe(floor, costs: [costs], cores: settings.cores, store: settings.store)
        result.ratioToFloor = result.floorRate.map { speed.rate / $0 }
        return result
    }

    // MARK: Floor

    private mutating func floor() async throws -> FloorCost {
        let costs = try await meter.costs(of: kind.floor.primitives, cores: settings.cores)
        floors.append(costs)
        return kind.floor.cost(costs)
    }
}
