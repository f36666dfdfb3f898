extension BenchResult {
    /// Middles of rounds at full speed.
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
