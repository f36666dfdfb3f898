/// A histogram of latencies with logarithmic buckets: percentiles are accurate to 0.2 %, and memory is constant.
///
/// Below 512 ns each nanosecond has its own bucket; above, each power of two has 256.
package struct LatencyHistogram: Sendable {
    private static let subBucketBits = 8
    private var counts = [UInt64](repeating: 0, count: (65 - subBucketBits) << subBucketBits)
    package private(set) var count: UInt64 = 0
    private var largest: UInt64 = 0

    package init() {}

    package mutating func record(_ latency: Duration) {
        record(nanoseconds: UInt64(max(0, latency.seconds * 1e9)))
    }

    mutating func record(nanoseconds: UInt64) {
        counts[Self.bucket(of: nanoseconds)] += 1
        count += 1
        largest = max(largest, nanoseconds)
    }

    package mutating func add(_ other: LatencyHistogram) {
        for index in counts.indices { counts[index] += other.counts[index] }
        count += other.count
        largest = max(largest, other.largest)
    }

    /// The percentile in microseconds; nil if the histogram is empty.
    ///
    /// - Parameter share: above 0, at most 1.
    package func percentile(_ share: Double) -> Double? {
        guard count > 0 else { return nil }
        let rank = max(1, UInt64((share * Double(count)).rounded(.up)))
        var seen: UInt64 = 0
        for (index, bucketCount) in counts.enumerated() {
            seen += bucketCount
            if seen >= rank { return Double(min(Self.middle(of: index), largest)) / 1000 }
        }
        return Double(largest) / 1000
    }

    static func bucket(of value: UInt64) -> Int {
        let exponent = max(0, 63 - value.leadingZeroBitCount - subBucketBits)
        guard value >= 1 << UInt64(subBucketBits) else { return Int(value) }
        return (exponent << subBucketBits) + Int(value >> UInt64(exponent))
    }

    private static func middle(of bucket: Int) -> UInt64 {
        let exponent = max(0, (bucket >> subBucketBits) - 1)
        let lower = UInt64(bucket - exponent << subBucketBits) << UInt64(exponent)
        return lower + (1 << UInt64(exponent)) / 2
    }
}
