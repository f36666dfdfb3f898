public import CoreMetrics
import Synchronization

/// A number that only grows: adding to it is one atomic instruction.
public final class CounterCell: CounterHandler {
    private let count = Atomic<Int64>(0)

    public init() {}

    public var value: Int64 { count.load(ordering: .relaxed) }

    public func increment(by amount: Int64) {
        count.wrappingAdd(amount, ordering: .relaxed)
    }

    public func reset() {
        count.store(0, ordering: .relaxed)
    }
}

/// A number that is set. Not shown until it is; NaN takes it away again.
public final class GaugeCell: MeterHandler {
    private let bits = Atomic<UInt64>(Double.nan.bitPattern)

    public var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

    public func set(_ value: Int64) {
        set(Double(value))
    }

    public func set(_ value: Double) {
        bits.store(value.bitPattern, ordering: .relaxed)
    }

    public func increment(by amount: Double) {
        var old = bits.load(ordering: .relaxed)
        while true {
            let value = Double(bitPattern: old)
            let (isDone, current) = bits.weakCompareExchange(
                expected: old, desired: ((value.isNaN ? 0 : value) + amount).bitPattern, ordering: .relaxed)
            if isDone { return }
            old = current
        }
    }

    public func decrement(by amount: Double) {
        increment(by: -amount)
    }
}

/// How long things took, in buckets. Recording takes two atomic instructions and a search among the bounds.
public final class HistogramCell: TimerHandler, RecorderHandler {
    private static let nanosecondsPerSecond = 1e9

    /// Upper ends, in nanoseconds; what is above all of them has a bucket of its own.
    private let bounds: [Int64]
    private let counts: [CounterCell]
    private let sum = Atomic<Int64>(0)

    /// - Parameter bounds: in seconds, ascending.
    init(bounds: [Double]) {
        self.bounds = bounds.map { Int64($0 * Self.nanosecondsPerSecond) }
        counts = (0...bounds.count).map { _ in CounterCell() }
    }

    public func recordNanoseconds(_ duration: Int64) {
        var (low, high) = (0, bounds.count)
        while low < high {
            let middle = (low + high) / 2
            if bounds[middle] < duration { low = middle + 1 } else { high = middle }
        }
        counts[low].increment(by: 1)
        sum.wrappingAdd(duration, ordering: .relaxed)
    }

    /// In seconds.
    public func record(_ value: Int64) {
        record(Double(value))
    }

    /// In seconds.
    public func record(_ value: Double) {
        guard value.isFinite else { return }
        recordNanoseconds(Int64(exactly: (value * Self.nanosecondsPerSecond).rounded()) ?? (value < 0 ? .min : .max))
    }

    /// Observations up to each bound, and at last all. The last is the count: it fits the others even while things are recorded.
    public var cumulativeCounts: [Int64] {
        var total: Int64 = 0
        return counts.map { count in
            total += count.value
            return total
        }
    }

    public var count: Int64 { cumulativeCounts.last ?? 0 }

    /// Of all observations.
    public var seconds: Double { Double(sum.load(ordering: .relaxed)) / Self.nanosecondsPerSecond }
}
