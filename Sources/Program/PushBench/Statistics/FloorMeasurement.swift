/// The costs of the steps of a floor and its limit: see ``Floor``.
struct FloorMeasurement: Sendable {
    private(set) var parts: [BenchResult.FloorPart] = []

    /// - Parameter limit: the number of calls in the limit; nil if it is the same.
    mutating func add(_ name: String, _ cost: FloorCost, times count: Double = 1, limit: Double? = nil, _ reason: String) {
        parts.append(
            BenchResult.FloorPart(
                name: name, count: count, limit: limit ?? count, microseconds: cost.cpuMicroseconds,
                serverMicroseconds: cost.serverMicroseconds, reason: reason))
    }

    var cpuMicroseconds: Double { parts.reduce(0) { $0 + $1.count * $1.microseconds } }
    var limitMicroseconds: Double { parts.reduce(0) { $0 + $1.limit * $1.microseconds } }
    var serverMicroseconds: Double { parts.reduce(0) { $0 + $1.count * $1.serverMicroseconds } }

    /// Messages per second that cost as much as the floor, on this number of cores.
    func rate(cores: Int) -> Double { cpuMicroseconds > 0 ? Double(cores) * 1e6 / cpuMicroseconds : 0 }

    /// Takes the median cost of each part.
    ///
    /// - Parameter measurements: of the same floor.
    static func median(of measurements: [FloorMeasurement]) -> FloorMeasurement {
        var result = measurements.first ?? FloorMeasurement()
        for index in result.parts.indices {
            result.parts[index].microseconds = PushBench.median(measurements.map { $0.parts[index].microseconds })
            result.parts[index].serverMicroseconds = PushBench.median(measurements.map { $0.parts[index].serverMicroseconds })
        }
        return result
    }
}

/// Rounds at full speed, with the floor measured before and after each, since the speed of a shared machine changes.
struct FloorRounds {
    private(set) var rounds: [FullSpeed] = []
    private(set) var floors: [FloorMeasurement]
    private let floor: () async throws -> FloorMeasurement

    init(floor: @escaping () async throws -> FloorMeasurement) async throws {
        self.floor = floor
        floors = [try await floor()]
    }

    /// The number of messages for a round of about this duration.
    func count(for seconds: Double, cores: Int) -> Int { Int(floors[0].rate(cores: cores) * seconds) }

    mutating func add(_ round: FullSpeed) async throws {
        rounds.append(round)
        floors.append(try await floor())
    }

    /// The floor's share of the CPU time of each round: that before and after it. A server's CPU time is in neither.
    var ratios: [Double] {
        zip(rounds, zip(floors, floors.dropFirst())).map { round, floors in
            let sum = [floors.0, floors.1].reduce(0) { $0 + $1.cpuMicroseconds - $1.serverMicroseconds }
            return round.cpuMicroseconds > 0 ? sum / 2 / round.cpuMicroseconds : 0
        }
    }
}
