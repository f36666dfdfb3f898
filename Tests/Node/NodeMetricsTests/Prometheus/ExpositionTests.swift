import CoreMetrics
@testable import NodeMetrics
import Testing

@Suite("What Prometheus reads")
struct ExpositionTests {
    private let registry = MetricRegistry([
        MetricDefinition(name: "pears_total", help: "Pears, \"ripe\" \\ or\nnot.", kind: .counter, labels: ["colour"]),
        MetricDefinition(name: "basket_bytes", help: "How large it is.", kind: .gauge),
        MetricDefinition(
            name: "ripening_seconds", help: "How long it takes.", kind: .histogram(bounds: [0.5, 1, 2.5]), labels: ["colour"]),
        MetricDefinition(name: "cpu_seconds_total", help: "Read elsewhere.", kind: .counter),
    ])

    @Test("Nothing is shown before it is there")
    func empty() {
        #expect(registry.exposition(as: .text) == "")
        #expect(registry.exposition(as: .openMetrics) == "# EOF\n")
        CoreMetrics.Meter(label: "basket_bytes", factory: registry).set(Double.nan)
        #expect(registry.exposition(as: .text) == "")
    }

    @Test("Counters, with whatever is in a label or a help text")
    func counters() {
        CoreMetrics.Counter(label: "pears_total", dimensions: [("colour", "gr\"ee\\n\n")], factory: registry).increment(by: 3)
        CoreMetrics.Counter(label: "pears_total", dimensions: [("colour", "red")], factory: registry).increment(by: 0)
        #expect(
            registry.exposition(as: .text) == #"""
                # HELP pears_total Pears, "ripe" \\ or\nnot.
                # TYPE pears_total counter
                pears_total{colour="gr\"ee\\n\n"} 3
                pears_total{colour="red"} 0

                """#)
        #expect(
            registry.exposition(as: .openMetrics) == #"""
                # HELP pears Pears, \"ripe\" \\ or\nnot.
                # TYPE pears counter
                pears_total{colour="gr\"ee\\n\n"} 3
                pears_total{colour="red"} 0
                # EOF

                """#)
    }

    @Test("Gauges, and counters that are read elsewhere, with their units")
    func gauges() {
        let meter = CoreMetrics.Meter(label: "basket_bytes", factory: registry)
        meter.set(7)
        meter.increment(by: 0.5)
        meter.decrement(by: 2)
        CoreMetrics.Meter(label: "cpu_seconds_total", factory: registry).set(0.25)
        #expect(
            registry.exposition(as: .openMetrics) == """
                # HELP basket_bytes How large it is.
                # TYPE basket_bytes gauge
                # UNIT basket_bytes bytes
                basket_bytes 5.5
                # HELP cpu_seconds Read elsewhere.
                # TYPE cpu_seconds counter
                # UNIT cpu_seconds seconds
                cpu_seconds_total 0.25
                # EOF

                """)
    }

    @Test("Buckets hold what is up to their bound, and all that lower ones hold")
    func histogram() {
        let timer = CoreMetrics.Timer(label: "ripening_seconds", dimensions: [("colour", "red")], factory: registry)
        for milliseconds in [0, 500, 501, 1000, 2500, 2501, 60_000] { timer.recordMilliseconds(milliseconds) }
        timer.recordNanoseconds(-5)
        #expect(
            registry.exposition(as: .text) == """
                # HELP ripening_seconds How long it takes.
                # TYPE ripening_seconds histogram
                ripening_seconds_bucket{colour="red",le="0.5"} 3
                ripening_seconds_bucket{colour="red",le="1.0"} 5
                ripening_seconds_bucket{colour="red",le="2.5"} 6
                ripening_seconds_bucket{colour="red",le="+Inf"} 8
                ripening_seconds_sum{colour="red"} 67.001999995
                ripening_seconds_count{colour="red"} 8

                """)
    }

    @Test("What is not on the list, or has other labels, is not shown")
    func unlisted() {
        CoreMetrics.Counter(label: "plums_total", factory: registry).increment()
        CoreMetrics.Counter(label: "pears_total", dimensions: [("owner", "a key")], factory: registry).increment()
        CoreMetrics.Counter(label: "pears_total", factory: registry).increment()
        CoreMetrics.Timer(label: "pears_total", dimensions: [("colour", "red")], factory: registry).recordNanoseconds(1)
        #expect(registry.exposition(as: .text) == "")
    }

    @Test("A second handle of the same name goes on with the first one's figure, from any thread")
    func sameSeries() async {
        await withDiscardingTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    let counter = CoreMetrics.Counter(label: "pears_total", dimensions: [("colour", "red")], factory: registry)
                    let meter = CoreMetrics.Meter(label: "basket_bytes", factory: registry)
                    for _ in 0..<1000 {
                        counter.increment()
                        meter.increment()
                    }
                }
            }
        }
        let text = registry.exposition(as: .text)
        #expect(text.contains("\npears_total{colour=\"red\"} 4000\n"))
        #expect(text.contains("\nbasket_bytes 4000.0\n"))
    }

    @Test(
        "OpenMetrics is for those who ask for it",
        arguments: [
            (nil, ExpositionFormat.text), ("", .text), ("*/*", .text), ("text/plain", .text), ("text/html", .text),
            ("application/openmetrics-text", .openMetrics), ("Application/OpenMetrics-Text; version=1.0.0; charset=utf-8", .openMetrics),
            ("application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", .openMetrics),
            ("application/openmetrics-text;q=0.3, text/plain;q=0.5", .text), ("application/openmetrics-text;q=0", .text),
            (";;q=,,=", .text),
        ] as [(String?, ExpositionFormat)])
    func negotiation(accept: String?, format: ExpositionFormat) {
        #expect(ExpositionFormat(accept: accept) == format)
    }
}
