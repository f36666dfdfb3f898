package import CoreMetrics
import Synchronization

/// A swift-metrics backend for Prometheus with a fixed list of metrics: `Counter`, `Meter` and `Timer` handles that are created with this
/// factory write to it.
///
/// A handle for a metric that is not on the list, or with other labels than its definition, is accepted and ignored, so that no names and
/// labels can be added at run time. A series is exposed as soon as its handle was created.
package final class MetricRegistry: MetricsFactory {
    enum Cell: Sendable {
        case counter(CounterCell)
        /// Also holds counters whose value is read elsewhere, such as processor time.
        case gauge(GaugeCell)
        case histogram(HistogramCell)
    }

    struct Series: Sendable {
        /// In the order of the definition's labels.
        let values: [String]
        let cell: Cell
    }

    struct Family: Sendable {
        let definition: MetricDefinition
        var series: [Series] = []
    }

    private let order: [String]
    private let families: Mutex<[String: Family]>

    package init(_ definitions: [MetricDefinition]) {
        order = definitions.map(\.name)
        families = Mutex(Dictionary(definitions.map { ($0.name, Family(definition: $0)) }) { first, _ in first })
    }

    /// In the order of the definitions, with series in the order of their creation.
    var all: [Family] {
        families.withLock { families in order.compactMap { families[$0] } }
    }

    // MARK: Handles

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        counter(label, dimensions)
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        let cell = cell(label, dimensions: dimensions) { definition in
            if case .histogram = definition.kind { nil } else { .gauge(GaugeCell()) }
        }
        if case .gauge(let gauge) = cell { return gauge }
        return GaugeCell()
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        histogram(label, dimensions)
    }

    package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        histogram(label, dimensions)
    }

    /// The storage of a counter, for code that also reads it.
    package func counter(_ name: String, _ dimensions: [(String, String)]) -> CounterCell {
        let cell = cell(name, dimensions: dimensions) { $0.kind == .counter ? .counter(CounterCell()) : nil }
        if case .counter(let counter) = cell { return counter }
        return CounterCell()
    }

    package func histogram(_ name: String, _ dimensions: [(String, String)]) -> HistogramCell {
        let cell = cell(name, dimensions: dimensions) { definition in
            if case .histogram(let bounds) = definition.kind { .histogram(HistogramCell(bounds: bounds)) } else { nil }
        }
        if case .histogram(let histogram) = cell { return histogram }
        return HistogramCell(bounds: [])
    }

    private func cell(_ name: String, dimensions: [(String, String)], make: (MetricDefinition) -> Cell?) -> Cell? {
        families.withLock { families in
            guard let definition = families[name]?.definition, dimensions.map(\.0) == definition.labels else { return nil }
            let values = dimensions.map(\.1)
            if let known = families[name]?.series.first(where: { $0.values == values }) { return known.cell }
            guard let cell = make(definition) else { return nil }
            families[name]?.series.append(Series(values: values, cell: cell))
            return cell
        }
    }

    // Handles are kept for the lifetime of the registry: their number is bounded.
    package func destroyCounter(_ handler: any CounterHandler) {}
    package func destroyMeter(_ handler: any MeterHandler) {}
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    package func destroyTimer(_ handler: any TimerHandler) {}
}
