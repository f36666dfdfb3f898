/// A floor whose parts are not all of ``Primitive``.
struct FloorMeasurement: Sendable {
    var parts: [BenchResult.FloorPart] = []
    var total = FloorCost()
    /// For Web Push: CPU time without libcurl's part of a post.
    var withoutHTTPMicroseconds = 0.0

    mutating func add(_ name: String, _ cost: FloorCost, times count: Double = 1, _ reason: String) {
        parts.append(BenchResult.FloorPart(name: name, count: count, microseconds: cost.cpuMicroseconds, reason: reason))
        total.cpuMicroseconds += count * cost.cpuMicroseconds
        total.coreMicroseconds += count * cost.coreMicroseconds
        total.writerMicroseconds += count * cost.writerMicroseconds
    }
}
