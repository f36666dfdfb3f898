import Testing

@testable import PushBench

@Suite("Percentiles out of buckets")
struct LatencyHistogramTests {
    @Test("Nothing has no percentile")
    func empty() {
        #expect(LatencyHistogram().percentile(0.5) == nil)
    }

    @Test("Every value has a bucket, and larger ones never a smaller one")
    func buckets() {
        var last = -1
        for shift in 0..<64 {
            for value in [UInt64(1) << shift, (UInt64(1) << shift) + (UInt64(1) << shift) / 3] {
                let bucket = LatencyHistogram.bucket(of: value)
                #expect(bucket >= last)
                last = bucket
            }
        }
        var histogram = LatencyHistogram()
        histogram.record(nanoseconds: .max)
        #expect(histogram.count == 1)
        #expect(LatencyHistogram.bucket(of: 0) == 0)
        #expect(LatencyHistogram.bucket(of: 511) == 511)
    }

    @Test("A percentile is right within 0.2 %", arguments: [0.01, 0.5, 0.9, 0.99, 0.999, 1])
    func accuracy(share: Double) throws {
        var histogram = LatencyHistogram()
        for value in 1...100_000 { histogram.record(.microseconds(value)) }
        let percentile = try #require(histogram.percentile(share))
        #expect(abs(percentile - share * 100_000) <= share * 100_000 * 0.002)
    }

    @Test("The largest is never exceeded")
    func largest() {
        var histogram = LatencyHistogram()
        histogram.record(nanoseconds: 1_000_001)
        #expect(histogram.percentile(1) ?? .infinity <= 1000.001)
        #expect(histogram.percentile(0.0001) ?? 0 >= 998)
    }

    @Test("Two together are as one that saw both")
    func sum() {
        var (left, right, both) = (LatencyHistogram(), LatencyHistogram(), LatencyHistogram())
        for value in stride(from: UInt64(1), to: 1_000_000, by: 997) {
            if value.isMultiple(of: 2) { left.record(nanoseconds: value) } else { right.record(nanoseconds: value) }
            both.record(nanoseconds: value)
        }
        left.add(right)
        #expect(left.count == both.count)
        for share in [0.1, 0.5, 0.999] { #expect(left.percentile(share) == both.percentile(share)) }
    }
}
