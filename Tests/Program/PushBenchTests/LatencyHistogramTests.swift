import Testing

@testable import PushBench

struct LatencyHistogramTests {
    @Test func emptyHistogramHasNoPercentile() {
        #expect(LatencyHistogram().percentile(0.5) == nil)
    }

    @Test(arguments: [0.01, 0.5, 0.9, 0.99, 0.999, 1]) func percentilesAreAccurate(share: Double) throws {
        var histogram = LatencyHistogram()
        for value: UInt64 in 1...100_000 { histogram.record(nanoseconds: value * 1000) }
        let percentile = try #require(histogram.percentile(share))
        #expect(abs(percentile - share * 100_000) <= share * 100_000 * 0.001)
    }

    @Test func percentilesDoNotExceedTheLargestLatency() {
        var histogram = LatencyHistogram()
        histogram.record(nanoseconds: 1_000_001)
        #expect(histogram.percentile(1) == 1000.001)
        #expect(histogram.percentile(0.0001) == 1000.001)
    }

    @Test("Longer latencies count as an hour", arguments: [3_600_000_000_000, 3_600_000_000_001, UInt64.max])
    func longest(nanoseconds: UInt64) {
        var histogram = LatencyHistogram()
        histogram.record(nanoseconds: nanoseconds)
        #expect(histogram.count == 1 && histogram.percentile(0.5) == 3.6e9)
    }

    @Test func sumEqualsAHistogramOfAllLatencies() {
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
