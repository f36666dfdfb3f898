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

    /// Adds the medians of rounds and of the floor.
    mutating func add(_ measured: FloorRounds, store: StoreLocation = .dataFolder) {
        add(rounds: measured.rounds)
        ratiosToFloor = measured.ratios
        let floor = FloorMeasurement.median(of: measured.floors)
        floorMicroseconds = floor.cpuMicroseconds
        limitMicroseconds = floor.limitMicroseconds
        floorServerMicroseconds = store == .dataFolder ? nil : floor.serverMicroseconds
        self.floor = floor.parts
    }
}
