@testable import NodeMetrics
import Testing

private enum Colour: String, MetricLabel {
    static let labelName = "colour"
    case green = "gr\"ee\\n\n"
    case red
}

private enum Owner: String, MetricLabel {
    static let labelName = "owner"
    case key = "a key"
}

extension Metric {
    fileprivate static let pears = Metric("pears_total", Colour.self, help: "Pears, \"ripe\" \\ or\nnot.")
    fileprivate static let basket = Metric("basket_bytes", help: "How large it is.")
    fileprivate static let ripening = Metric("ripening_seconds", Colour.self, buckets: [0.5, 1, 2.5], help: "How long it takes.")
    fileprivate static let processor = Metric("cpu_seconds_total", help: "Read elsewhere.")
    /// Not on the list.
    fileprivate static let plums = Metric("plums_total", help: "Plums.")
}

@Suite("The text format of Prometheus")
struct ExpositionTests {
    private let registry = MetricRegistry([.pears, .basket, .ripening, .processor])

    @Test("Metrics without a value are left out")
    func empty() {
        #expect(registry.exposition() == "")
        registry.set(.basket, to: nil)
        #expect(registry.exposition() == "")
    }

    @Test("Counters, with any characters in labels and help texts")
    func counters() {
        registry.counter(.pears, Colour.green).increment(by: 3)
        registry.counter(.pears, Colour.red).increment(by: 0)
        #expect(
            registry.exposition() == #"""
                # HELP pears_total Pears, "ripe" \\ or\nnot.
                # TYPE pears_total counter
                pears_total{colour="gr\"ee\\n\n"} 3
                pears_total{colour="red"} 0

                """#)
    }

    @Test("Gauges, and counters that are set to values read elsewhere")
    func gauges() {
        registry.set(.basket, to: 7)
        registry.set(.basket, to: 5.5)
        registry.set(.processor, to: 0.25)
        #expect(
            registry.exposition() == """
                # HELP basket_bytes How large it is.
                # TYPE basket_bytes gauge
                basket_bytes 5.5
                # HELP cpu_seconds_total Read elsewhere.
                # TYPE cpu_seconds_total counter
                cpu_seconds_total 0.25

                """)
    }

    @Test("Buckets are cumulative: each counts all values up to its bound")
    func histogram() {
        let histogram = registry.histogram(.ripening, Colour.red)
        for milliseconds in [0, 500, 501, 1000, 2500, 2501, 60_000] as [Int64] { histogram.recordNanoseconds(milliseconds * 1_000_000) }
        histogram.recordNanoseconds(-5)
        #expect(
            registry.exposition() == """
                # HELP ripening_seconds How long it takes.
                # TYPE ripening_seconds histogram
                ripening_seconds_bucket{colour="red",le="0.5"} 3
                ripening_seconds_bucket{colour="red",le="1.0"} 5
                ripening_seconds_bucket{colour="red",le="2.5"} 6
                ripening_seconds_bucket{colour="red",le="+Inf"} 8
                ripening_seconds_sum{colour="red"} 67.002
                ripening_seconds_count{colour="red"} 8

                """)
    }

    @Test("The sum of centuries is right")
    func largeSum() {
        let histogram = registry.histogram(.ripening, Colour.red)
        for _ in 0..<4000 { histogram.recordNanoseconds(30 * 86_400 * 1_000_000_000) }
        #expect(histogram.seconds == 4000 * 30 * 86_400)
    }

    @Test("Metrics that are not listed, and series with other labels, are left out")
    func unlisted() {
        registry.counter(.plums).increment(by: 1)
        registry.counter(.pears, Owner.key).increment(by: 1)
        registry.counter(.pears).increment(by: 1)
        registry.histogram(.pears, Colour.red).recordNanoseconds(1)
        registry.counter(.ripening, Colour.red).increment(by: 1)
        #expect(registry.exposition() == "")
    }

    @Test("A second cell of the same series continues the first one's count, from any thread")
    func sameSeries() async {
        await withDiscardingTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<1000 { registry.counter(.pears, Colour.red).increment(by: 1) }
                }
            }
        }
        #expect(registry.exposition().contains("\npears_total{colour=\"red\"} 4000\n"))
    }
}
