import Histogram

/// Latencies of up to an hour; percentiles are accurate to 0.1 %. Longer ones count as an hour.
struct LatencyHistogram: Sendable {
    private static let longest: UInt64 = 3_600_000_000_000
    private var nanoseconds = Histogram<UInt64>(highestTrackableValue: longest, numberOfSignificantValueDigits: .three)

    var count: UInt64 { nanoseconds.totalCount }

    mutating func record(nanoseconds: UInt64) {
        self.nanoseconds.record(min(nanoseconds, Self.longest))
    }

    /// The percentile in microseconds; nil if the histogram is empty.
    ///
    /// - Parameter share: above 0, at most 1.
    func percentile(_ share: Double) -> Double? {
        count > 0 ? Double(nanoseconds.valueAtPercentile(share * 100)) / 1000 : nil
    }
}
