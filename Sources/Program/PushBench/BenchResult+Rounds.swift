import NodeAssembly
import NodeMetrics

extension BenchResult {
    /// Adds the medians of rounds at full speed.
    mutating func add(rounds: [FullSpeed]) {
        rate = median(rounds.map(\.rate))
        cpuMicroseconds = median(rounds.map(\.cpuMicroseconds))
        messages = rounds.reduce(0) { $0 + $1.count }
        unanswered = rounds.reduce(0) { $0 + $1.unanswered }
    }

    mutating func add(_ openLoop: OpenLoop) {
        latencies = openLoop.latencies
        latencyRate = openLoop.rate
        messages = (messages ?? 0) + openLoop.count
        unanswered = (unanswered ?? 0) + openLoop.unanswered
    }

    /// Adds all counters of the node to the note if messages went unanswered: they tell where.
    mutating func explainUnanswered(by counters: Counters) {
        guard let unanswered, unanswered > 0 else { return }
        let counts = counters.declared.lazy.map { ($0.name, counters.count($0)) }.filter { $0.1 != 0 }
        let text = "the node counted: " + counts.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
        note = note.map { $0 + "\n" + text } ?? text
    }

    /// Adds the medians of the floor's costs.
    mutating func describe(_ floor: Floor, costs: [[Primitive: FloorCost]], cores: Int, store: StoreLocation = .dataFolder) {
        var medians: [Primitive: FloorCost] = [:]
        for primitive in floor.primitives {
            let measured = costs.compactMap { $0[primitive] }
            medians[primitive] = FloorCost(
                cpuMicroseconds: median(measured.map(\.cpuMicroseconds)), coreMicroseconds: median(measured.map(\.coreMicroseconds)),
                serverMicroseconds: median(measured.map(\.serverMicroseconds)),
                writerMicroseconds: median(measured.map(\.writerMicroseconds)))
        }
        let sum = floor.cost(medians)
        floorMicroseconds = sum.cpuMicroseconds
        floorServerMicroseconds = store == .dataFolder ? nil : sum.serverMicroseconds
        floorRate = sum.rate(cores: cores)
        self.floor = floor.items.map { item in
            FloorPart(
                name: item.primitive.name(on: store), count: item.count, microseconds: medians[item.primitive]?.cpuMicroseconds ?? 0,
                reason: item.reason)
        }
    }
}
