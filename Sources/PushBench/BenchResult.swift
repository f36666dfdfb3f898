/// One line of what was found.
public struct BenchResult: Sendable {
    public var name: String
    /// A second, by the clock, on all cores; of a primitive, on one.
    public var rate: Double?
    /// Of the whole process, for each message.
    public var cpuMicroseconds: Double?
    /// The sum of the bare library calls, with all cores at it.
    public var floorMicroseconds: Double?
    /// What the floor makes possible on these cores, measured before and after.
    public var floorRate: Double?
    /// `rate / floorRate`: 1 is as fast as the library calls alone. Middle of the rounds.
    public var ratioToFloor: Double?
    /// What of the processors' time goes into the floor; the rest is the node's own. Steadier than ``ratioToFloor`` on a busy machine.
    public var cpuRatioToFloor: Double? {
        guard let floorMicroseconds, let cpuMicroseconds, cpuMicroseconds > 0 else { return nil }
        return floorMicroseconds / cpuMicroseconds
    }
    /// From hand-over to the answer's publication, at ``latencyRate``.
    public var latencies: LatencyHistogram?
    public var latencyRate: Double?
    /// Of the whole process, the benchmark's own messages included.
    public var residentBytes: Int?
    public var messages: Int?
    public var unanswered: Int?
    /// What the floor consists of: name, how often, microseconds each.
    public var floor: [FloorPart] = []
    /// Further figures, by name.
    public var details: [String: Double] = [:]

    /// Of a long run.
    public var intervals: [EnduranceBench.Interval] = []
    /// What figures in columns don't tell, for people.
    public var note: String?

    public init(name: String) {
        self.name = name
    }

    public struct FloorPart: Sendable, Encodable {
        public let name: String
        public let count: Double
        public let microseconds: Double
        public let reason: String
    }
}

extension BenchResult: Encodable {
    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// The first five are always there, null when they make no sense; others only when they were measured.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        func always(_ name: String, _ value: Double?) throws {
            if let value, value.isFinite {
                try container.encode(value.roundedToMeasure, forKey: Key(stringValue: name))
            } else {
                try container.encodeNil(forKey: Key(stringValue: name))
            }
        }
        func ifMeasured(_ name: String, _ value: Double?) throws {
            if value != nil { try always(name, value) }
        }
        try container.encode(name, forKey: Key(stringValue: "name"))
        try always("rate", rate)
        try always("cpuMicroseconds", cpuMicroseconds)
        try always("floorMicroseconds", floorMicroseconds)
        try always("ratioToFloor", ratioToFloor)
        try ifMeasured("cpuRatioToFloor", cpuRatioToFloor)
        try ifMeasured("floorRate", floorRate)
        try ifMeasured("p50Microseconds", latencies?.percentile(0.5))
        try ifMeasured("p99Microseconds", latencies?.percentile(0.99))
        try ifMeasured("p999Microseconds", latencies?.percentile(0.999))
        try ifMeasured("latencyRate", latencyRate)
        for (name, count) in [("residentBytes", residentBytes), ("messages", messages), ("unanswered", unanswered)] {
            if let count { try container.encode(count, forKey: Key(stringValue: name)) }
        }
        if !floor.isEmpty { try container.encode(floor, forKey: Key(stringValue: "floor")) }
        if !intervals.isEmpty { try container.encode(intervals, forKey: Key(stringValue: "intervals")) }
        for (name, value) in details { try always(name, value) }
    }
}

extension Double {
    /// At least four digits, which is more than is measured.
    var roundedToMeasure: Double {
        guard self != 0, isFinite else { return self }
        var scale = 1.0
        while abs(self) * scale < 1e3 { scale *= 10 }
        return (self * scale).rounded() / scale
    }
}
