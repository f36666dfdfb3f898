import Prometheus
import TestSupport
import Testing

@testable import PushNode

@Suite("The list of metrics")
struct MetricTests {
    @Test("A counter knows its place, and has a series of its own with the labels of its metric")
    func series() {
        var known: Set<[String]> = []
        for (place, counter) in Counter.allCases.enumerated() {
            #expect(counter.place == place)
            guard let (metric, labels) = counter.series else { continue }
            #expect(labels.map { type(of: $0).labelName } == metric.labels.map { $0.labelName }, "\(counter)")
            #expect(zip(labels, metric.labels).allSatisfy { type(of: $0) == $1 }, "\(counter)")
            #expect(metric.definition.kind == .counter)
            #expect(known.insert([metric.rawValue] + labels.dimensions.map(\.1)).inserted, "\(counter)")
        }
        #expect(Set(Counter.allCases.map(\.rawValue)).count == Counter.allCases.count)
    }

    @Test("Labels know their places")
    func places() {
        #expect(KindLabel.allCases.map(\.place) == [0, 1, 2])
        #expect(StageLabel.allCases.map(\.place) == [0, 1, 2, 3, 4])
        #expect(ReportLabel.allCases.map(\.place) == [0, 1, 2, 3, 4])
    }

    @Test("What is counted is read again, and shows under its name")
    func counting() {
        let counters = Counters()
        counters.add(.foreign, 5)
        counters.add(.foreign)
        counters.add(.droppedUnsigned, 2)
        counters.add(.postFailed)
        counters.add(.ours, 0)
        #expect(counters.snapshot == [.foreign: 6, .droppedUnsigned: 2, .postFailed: 1])
        #expect(counters.count(.foreign) == 6)
        let text = counters.registry.exposition(as: .text)
        #expect(text.contains("\nwaku_push_messages_foreign_total 6\n"))
        #expect(text.contains("\nwaku_push_messages_dropped_total{stage=\"opening\",reason=\"unsigned\"} 2\n"))
        #expect(text.contains("\nwaku_push_messages_ours_total 0\n"))
    }

    @Test("A status of HTTP that nobody knows is another's")
    func statuses() {
        #expect(StatusLabel(nil) == .none)
        #expect(StatusLabel(503) == .serviceUnavailable)
        #expect(StatusLabel(299) == .other)
        #expect(StatusLabel(-1) == .other)
    }

    @Test("The article's table is that of the list")
    func article() throws {
        #expect(try GeneratedTable("metrics", in: "Metrics.md").isCurrent(Metric.markdownTable), "run Deploy/generate-tables")
    }
}
