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
}
