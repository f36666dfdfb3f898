public import CoreMetrics
import Synchronization

/// Keeps the metrics of a closed list of definitions, behind the façade of swift-metrics: handles of `Counter`, `Meter` and `Timer` that are
/// made with this as their factory write to it, and Prometheus reads it.
///
/// What is not on the list, or has other labels than its definition, gets a handle that nobody reads: no name and no label can come in from
/// elsewhere. A series shows from when its handle is made.
public final class MetricRegistry: MetricsFactory {
    enum Cell: Sendable {
        case counter(CounterCell)
        /// Also of counters that are read somewhere rather than counted here, such as processor time.
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

    public init(_ definitions: [MetricDefinition]) {
        order = definitions.map(\.name)
        families = Mutex(Dictionary(definitions.map { ($0.name, Family(definition: $0)) }) { first, _ in first })
    }

    /// As they are defined, with their series in the order in which they were made.
    var all: [Family] {
        families.withLock { families in order.compactMap { families[$0] } }
    }

    // MARK: Handles

    public func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        counter(label, dimensions)
    }

    public func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        let cell = cell(label, dimensions) { definition in
            if case .histogram = definition.kind { nil } else { .gauge(GaugeCell()) }
        }
        if case .gauge(let gauge) = cell { return gauge }
        return GaugeCell()
    }

    public func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        histogram(label, dimensions)
    }

    public func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        histogram(label, dimensions)
    }

    /// What a counter's handle writes to, for those who want to read it too.
    public func counter(_ name: String, _ dimensions: [(String, String)]) -> CounterCell {
        let cell = cell(name, dimensions) { $0.kind == .counter ? .counter(CounterCell()) : nil }
        if case .counter(let counter) = cell { return counter }
        return CounterCell()
    }

    public func histogram(_ name: String, _ dimensions: [(String, String)]) -> HistogramCell {
        let cell = cell(name, dimensions) { definition in
            if case .histogram(let bounds) = definition.kind { .histogram(HistogramCell(bounds: bounds)) } else { nil }
        }
        if case .histogram(let histogram) = cell { return histogram }
        return HistogramCell(bounds: [])
    }

    private func cell(_ name: String, _ dimensions: [(String, String)], _ make: (MetricDefinition) -> Cell?) -> Cell? {
        families.withLock { families in
            guard let definition = families[name]?.definition, dimensions.map(\.0) == definition.labels else { return nil }
            let values = dimensions.map(\.1)
            if let known = families[name]?.series.first(where: { $0.values == values }) { return known.cell }
            guard let cell = make(definition) else { return nil }
            families[name]?.series.append(Series(values: values, cell: cell))
            return cell
        }
    }

    // Handles are kept for as long as the registry is: they are few.
    public func destroyCounter(_ handler: any CounterHandler) {}
    public func destroyMeter(_ handler: any MeterHandler) {}
    public func destroyRecorder(_ handler: any RecorderHandler) {}
    public func destroyTimer(_ handler: any TimerHandler) {}
}
