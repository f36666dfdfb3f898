import Testing

@testable import PushBench

struct LatencyHistogramTests {
    @Test func emptyHistogramHasNoPercentile() {
        #expect(LatencyHistogram().percentile(0.5) == nil)
    }

    @Test(arguments: [0.01, 0.5, 0.9, 0.99, 0.999, 1]) func percentilesAreAccurate(share: Double) throws {
        var histogram = LatencyHistogram()
        for value in 1...100_000 { histogram.record(.microseconds(value)) }
        let percentile = try #require(histogram.percentile(share))
        #expect(abs(percentile - share * 100_000) <= share * 100_000 * 0.001)
    }

    @Test func percentilesDoNotExceedTheLargestLatency() {
        var histogram = LatencyHistogram()
        histogram.record(.nanoseconds(1_000_001))
        #expect(histogram.percentile(1) == 1000.001)
        #expect(histogram.percentile(0.0001) == 1000.001)
    }

    @Test(arguments: [(Duration.seconds(-1), 0), (.seconds(3600), 3.6e9), (.seconds(Int64.max), 3.6e9)])
    func latenciesOutOfRangeAreClamped(latency: Duration, microseconds: Double) {
        var histogram = LatencyHistogram()
        histogram.record(latency)
        #expect(histogram.count == 1 && histogram.percentile(0.5) == microseconds)
    }

    @Test func sumEqualsAHistogramOfAllLatencies() {
        var (left, right, both) = (LatencyHistogram(), LatencyHistogram(), LatencyHistogram())
        for value in stride(from: 1, to: 1_000_000, by: 997) {
            if value.isMultiple(of: 2) { left.record(.nanoseconds(value)) } else { right.record(.nanoseconds(value)) }
            both.record(.nanoseconds(value))
        }
        left.add(right)
        #expect(left.count == both.count)
        for share in [0.1, 0.5, 0.999] { #expect(left.percentile(share) == both.percentile(share)) }
    }
}
