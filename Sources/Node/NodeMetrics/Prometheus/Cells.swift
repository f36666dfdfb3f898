import Synchronization

/// A counter. Incrementing takes one atomic instruction.
package final class CounterCell: Sendable {
    private let count = Atomic<Int64>(0)

    package init() {}

    package var value: Int64 { count.load(ordering: .relaxed) }

    package func increment(by amount: Int64) {
        count.wrappingAdd(amount, ordering: .relaxed)
    }
}

/// A gauge. It is omitted from the exposition until it is set; setting NaN omits it again.
final class GaugeCell: Sendable {
    private let bits = Atomic<UInt64>(Double.nan.bitPattern)

    var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

    func set(_ value: Double) {
        bits.store(value.bitPattern, ordering: .relaxed)
    }
}

/// A histogram of durations. Recording takes two atomic instructions and a binary search of the bounds.
package final class HistogramCell: Sendable {
    private static let nanosecondsPerSecond = 1e9

    /// Upper bounds of the buckets in nanoseconds, without the last one, infinity.
    private let bounds: [Int64]
    private let counts: [CounterCell]
    /// In microseconds: in nanoseconds it would overflow after some thousand messages that were looked up weeks after they were sent.
    private let sum = Atomic<Int64>(0)

    /// - Parameter bounds: In seconds, ascending.
    init(bounds: [Double]) {
        self.bounds = bounds.map { Int64($0 * Self.nanosecondsPerSecond) }
        counts = (0...bounds.count).map { _ in CounterCell() }
    }

    package func recordNanoseconds(_ duration: Int64) {
        var (low, high) = (0, bounds.count)
        while low < high {
            let middle = (low + high) / 2
            if bounds[middle] < duration { low = middle + 1 } else { high = middle }
        }
        counts[low].increment(by: 1)
        sum.wrappingAdd(duration / 1000, ordering: .relaxed)
    }

    /// The number of observations up to each bound; the last is the total. Consistent even while observations are recorded concurrently.
    package var cumulativeCounts: [Int64] {
        var total: Int64 = 0
        return counts.map { count in
            total += count.value
            return total
        }
    }

    /// The sum of all observations.
    package var seconds: Double { Double(sum.load(ordering: .relaxed)) / 1e6 }
}
