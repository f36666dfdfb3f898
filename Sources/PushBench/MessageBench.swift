import StatusProtocol
import Waku
import WakuCrypto

/// What is measured of one kind of message: a real node on a real data folder, fed as fast as it takes messages, then at half that rate.
public struct MessageBench: Sendable {
    public enum Kind: String, CaseIterable, Sendable {
        case registration = "registration new"
        case update = "registration update"
        case stale = "registration stale"
        case query = "query"
        case request = "request"

        var floor: Floor {
            switch self {
            case .registration, .update: .registration
            case .stale: .stale
            case .query: .query
            case .request: .request
            }
        }

        /// Registered before. Query topics cost 11 ms each to derive.
        var seedCount: Int {
            switch self {
            case .registration: 0
            case .query: 32
            case .update, .stale, .request: 2_000
            }
        }
    }

    let kind: Kind
    let settings: BenchSettings

    public init(_ kind: Kind, settings: BenchSettings) {
        self.kind = kind
        self.settings = settings
    }

    public func run() async throws -> [BenchResult] {
        try await settings.withFolder { bareFolder in
            let meter = PrimitiveMeter(folder: bareFolder, slice: settings.slice)
            try meter.prepare()
            return try await settings.withFolder { folder in
                settings.progress("\(kind.rawValue): registrants", 0)
                let identity = PrivateKey.generate()
                let maker = await QuestionMaker(kind, identity: identity, cores: settings.cores)
                if !maker.clients.isEmpty { try await BenchNode.seed(maker.clients, identity: identity, folder: folder) }
                return try await BenchNode.running(
                    identity: identity, folder: folder, gorush: PostingStandIn(latency: settings.gorushLatency)
                ) { [settings, kind] node in
                    var run = MessageRun(kind: kind, settings: settings, meter: meter, maker: maker, relay: node.relay)
                    return try await run.measure()
                }
            }
        }
    }
}

/// Makes distinct messages of one kind, in advance.
struct QuestionMaker: Sendable {
    let kind: MessageBench.Kind
    let server: PublicKey
    let clients: [BenchClient]
    private let topicKeys: [SymmetricKey]
    private let cores: Int

    init(_ kind: MessageBench.Kind, identity: PrivateKey, cores: Int) async {
        self.kind = kind
        self.cores = cores
        server = identity.publicKey
        let clients = await makeInParallel(kind.seedCount, cores: cores) { _ in BenchClient() }
        self.clients = clients
        topicKeys =
            kind == .query
            ? await makeInParallel(clients.count, cores: cores) { KeyDerivation.topicKey(StatusTopics.query(clients[$0].keyHash)) } : []
    }

    /// - Parameter start: how many were made before.
    func make(_ count: Int, after start: Int) async -> [Question] {
        await makeInParallel(count, cores: cores) { question(start + $0) }
    }

    private func question(_ number: Int) -> Question {
        guard kind != .registration else { return BenchClient().registering(version: 1, server: server) }
        let index = number % clients.count
        switch kind {
        case .registration, .update: return clients[index].registering(version: UInt64(number / clients.count) + 2, server: server)
        case .stale: return clients[index].registering(version: 1, server: server)
        case .query: return clients[index].asking(topicKey: topicKeys[index])
        case .request: return clients[index].notifying(server: server)
        }
    }
}

/// The rounds of one kind, with floors in between.
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

    /// What one round of full speed found.
    private struct Round {
        let rate: Double
        let cpuMicroseconds: Double
        let count: Int
        let unanswered: Int
    }

    mutating func measure() async throws -> [BenchResult] {
        let name = kind.rawValue
        settings.progress("\(name): floor", 0)
        let before = try await floor()
        let first = kind == .query ? try await firstQueries() : nil
        let count = max(32, Int(before.rate(cores: settings.cores) * settings.seconds))
        // Caches and pools fill: not measured.
        _ = try await fullSpeed(min(count, 256))

        var rounds: [Round] = []
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

        var measurement = BenchResult(name: name)
        measurement.rate = median(rounds.map(\.rate))
        measurement.cpuMicroseconds = median(rounds.map(\.cpuMicroseconds))
        measurement.ratioToFloor = median(ratios)
        measurement.messages = rounds.reduce(0) { $0 + $1.count }
        measurement.unanswered = rounds.reduce(0) { $0 + $1.unanswered }
        describeFloor(&measurement)
        settings.progress("\(name): latencies", Double(settings.rounds + 1) / Double(settings.rounds + 2))
        try await measureLatencies(&measurement)
        measurement.residentBytes = ProcessUsage.residentBytes()
        return [measurement] + (first.map { [$0] } ?? [])
    }

    // MARK: Full speed

    private mutating func fullSpeed(_ count: Int) async throws -> Round {
        let questions = await maker.make(count, after: made)
        made += count
        return try await fullSpeed(questions)
    }

    private func fullSpeed(_ questions: [Question]) async throws -> Round {
        let batches = stride(from: 0, to: questions.count, by: settings.batch).map { start in
            questions[start..<min(start + settings.batch, questions.count)].map(\.message)
        }
        let answered = relay.answers
        let usage = ProcessUsage.now()
        let start = Uptime.nanoseconds()
        await relay.feed(batches)
        _ = try await relay.waitForAnswers(answered + questions.count)
        let end = relay.lastAnswerTime
        // What follows an answer is part of its cost.
        try await Task.sleep(for: .milliseconds(20))
        let cpu = ProcessUsage.now().cpu - usage.cpu
        let answers = relay.answers - answered
        return Round(
            rate: answers > 0 && end > start ? Double(answers) * 1e9 / Double(end - start) : 0,
            cpuMicroseconds: cpu.microseconds / Double(questions.count), count: questions.count,
            unanswered: max(0, questions.count - answers))
    }

    /// The first query on a topic pays for its key.
    private mutating func firstQueries() async throws -> BenchResult {
        let floor = Floor(items: kind.floor.items + [Floor.Item(.topicKey, "key of the topic")])
        let costs = try await meter.costs(of: floor.primitives, cores: settings.cores)
        let round = try await fullSpeed(maker.clients.count)
        var measurement = BenchResult(name: "query, first on its topic")
        measurement.rate = round.rate
        measurement.cpuMicroseconds = round.cpuMicroseconds
        measurement.messages = round.count
        measurement.unanswered = round.unanswered
        measurement.describe(floor, costs: [costs], cores: settings.cores)
        measurement.ratioToFloor = measurement.floorRate.map { round.rate / $0 }
        return measurement
    }

    // MARK: Latencies

    private mutating func measureLatencies(_ measurement: inout BenchResult) async throws {
        guard let rate = measurement.rate, rate > 0 else { return }
        let moderate = rate / 2
        let questions = await maker.make(max(32, Int(moderate * settings.seconds)), after: made)
        made += questions.count
        let answered = relay.answers
        var due: [UInt64] = []
        let answers = try await relay.recording {
            due = await relay.feed(questions.map(\.message), rate: moderate)
            _ = try await relay.waitForAnswers(answered + questions.count)
        }
        let matched = AnswerMatching.latencies(due: due, topics: questions.map(\.answerTopic), answers: answers)
        measurement.latencies = matched.latencies
        measurement.latencyRate = moderate
        measurement.messages = (measurement.messages ?? 0) + questions.count
        measurement.unanswered = (measurement.unanswered ?? 0) + matched.unanswered
    }

    // MARK: Floor

    private mutating func floor() async throws -> FloorCost {
        let costs = try await meter.costs(of: kind.floor.primitives, cores: settings.cores)
        floors.append(costs)
        return kind.floor.cost(costs)
    }

    private func describeFloor(_ measurement: inout BenchResult) {
        measurement.describe(kind.floor, costs: floors, cores: settings.cores)
    }
}

extension BenchResult {
    /// Middles of what each part cost.
    mutating func describe(_ floor: Floor, costs: [[Primitive: FloorCost]], cores: Int) {
        var middle: [Primitive: FloorCost] = [:]
        for primitive in floor.primitives {
            let measured = costs.compactMap { $0[primitive] }
            middle[primitive] = FloorCost(
                cpuMicroseconds: median(measured.map(\.cpuMicroseconds)), coreMicroseconds: median(measured.map(\.coreMicroseconds)))
        }
        let sum = floor.cost(middle)
        floorMicroseconds = sum.cpuMicroseconds
        floorRate = sum.rate(cores: cores)
        self.floor = floor.items.map { item in
            FloorPart(
                name: item.primitive.rawValue, count: item.count, microseconds: middle[item.primitive]?.cpuMicroseconds ?? 0,
                reason: item.reason)
        }
    }
}

/// 0 of nothing.
func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    guard !sorted.isEmpty else { return 0 }
    let middle = sorted.count / 2
    return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
}
