import Core
import NodeAssembly
import NodeMetrics

/// A row of results.
struct BenchResult: Sendable {
    var name: String
    /// Messages per second of wall time on all cores; for a primitive, operations on one core.
    var rate: Double?
    /// CPU time of the whole process per message.
    var cpuMicroseconds: Double?
    /// CPU time of the library calls that a message needs: see ``Floor``.
    var floorMicroseconds: Double?
    /// The same with the best known implementation.
    var limitMicroseconds: Double?
    /// The part of ``floorMicroseconds`` that a PostgreSQL server on this machine spends; nil with another store.
    var floorServerMicroseconds: Double?
    /// The floor's share of the process's CPU time in each round; the rest is the node's own. A server's CPU time is in neither.
    var ratiosToFloor: [Double] = []
    var ratioToFloor: Double? { ratiosToFloor.isEmpty ? nil : median(ratiosToFloor) }
    /// CPU time of the whole process per message at a quarter of ``rate``, and at half of it.
    var cpuMicrosecondsAtQuarter: Double?
    var cpuMicrosecondsAtHalf: Double?
    /// Time from delivery to the publication of the answer, at ``latencyRate``.
    var latencies: LatencyHistogram?
    var latencyRate: Double?
    /// Resident memory of the whole process, including the benchmark's own messages.
    var residentBytes: Int?
    var messages: Int?
    var unanswered: Int?
    /// The parts of the floor.
    var floor: [FloorPart] = []
    /// Further figures, by name.
    var details: [String: Double] = [:]
    /// A remark below the table.
    var note: String?

    struct FloorPart: Sendable, Encodable {
        let name: String
        let count: Double
        let limit: Double
        var microseconds: Double
        var serverMicroseconds: Double
        let reason: String
    }
}

extension BenchResult: Encodable {
    /// The first five members are always present, null if they don't apply; the others only if they were measured.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: DynamicKey.self)
        func always(_ name: String, _ value: Double?) throws {
            if let value, value.isFinite {
                try container.encode(value.roundedToMeasure, forKey: DynamicKey(stringValue: name))
            } else {
                try container.encodeNil(forKey: DynamicKey(stringValue: name))
            }
        }
        func ifMeasured(_ name: String, _ value: Double?) throws {
            if value != nil { try always(name, value) }
        }
        try container.encode(name, forKey: "name")
        try always("rate", rate)
        try always("cpuMicroseconds", cpuMicroseconds)
        try always("floorMicroseconds", floorMicroseconds)
        try always("ratioToFloor", ratioToFloor)
        try ifMeasured("lowestRatioToFloor", ratiosToFloor.min())
        try ifMeasured("highestRatioToFloor", ratiosToFloor.max())
        try ifMeasured("limitMicroseconds", limitMicroseconds)
        try ifMeasured("cpuMicrosecondsAtQuarter", cpuMicrosecondsAtQuarter)
        try ifMeasured("cpuMicrosecondsAtHalf", cpuMicrosecondsAtHalf)
        try ifMeasured("floorServerMicroseconds", floorServerMicroseconds)
        try ifMeasured("p50Microseconds", latencies?.percentile(0.5))
        try ifMeasured("p99Microseconds", latencies?.percentile(0.99))
        try ifMeasured("p999Microseconds", latencies?.percentile(0.999))
        try ifMeasured("latencyRate", latencyRate)
        for (name, count) in [("residentBytes", residentBytes), ("messages", messages), ("unanswered", unanswered)] {
            if let count { try container.encode(count, forKey: DynamicKey(stringValue: name)) }
        }
        if !floor.isEmpty { try container.encode(floor, forKey: "floor") }
        for (name, value) in details { try always(name, value) }
    }
}

extension Double {
    /// Rounded to at least four significant digits, more than the precision of the measurement.
    var roundedToMeasure: Double {
        guard self != 0, isFinite else { return self }
        var scale = 1.0
        while abs(self) * scale < 1e3 { scale *= 10 }
        return (self * scale).rounded() / scale
    }
}

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
