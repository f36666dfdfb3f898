import Synchronization

/// The series of a fixed list of metrics, for Prometheus. A series is exposed as soon as its cell was asked for.
///
/// A metric that is not on the list, or with other labels than it declares, gets a cell that is not exposed, so that no names and labels can be
/// added at run time.
package final class MetricRegistry: Sendable {
    enum Cell: Sendable {
        case counter(CounterCell)
        /// Also holds counters whose value is read elsewhere, such as processor time.
        case gauge(GaugeCell)
        case histogram(HistogramCell)
    }

    struct Series: Sendable {
        /// In the order of the metric's labels.
        let values: [String]
        let cell: Cell
    }

    struct Family: Sendable {
        let metric: Metric
        var series: [Series] = []
    }

    private let order: [Metric]
    private let families: Mutex<[Metric: Family]>

    package init(_ metrics: [Metric]) {
        order = metrics
        families = Mutex(Dictionary(metrics.map { ($0, Family(metric: $0)) }) { first, _ in first })
    }

    /// In the order of the list, with series in the order of their creation.
    var all: [Family] {
        families.withLock { families in order.compactMap { families[$0] } }
    }

    // MARK: Cells

    package func counter(_ metric: Metric, _ labels: any MetricLabel...) -> CounterCell { counter(metric, labels) }
    package func histogram(_ metric: Metric, _ labels: any MetricLabel...) -> HistogramCell { histogram(metric, labels) }

    func counter(_ metric: Metric, _ labels: [any MetricLabel]) -> CounterCell {
        let cell = cell(metric, labels) { $0.kind == .counter ? .counter(CounterCell()) : nil }
        if case .counter(let counter) = cell { return counter }
        return CounterCell()
    }

    func histogram(_ metric: Metric, _ labels: [any MetricLabel]) -> HistogramCell {
        let cell = cell(metric, labels) { metric in
            if case .histogram(let bounds) = metric.kind { .histogram(HistogramCell(bounds: bounds)) } else { nil }
        }
        if case .histogram(let histogram) = cell { return histogram }
        return HistogramCell(bounds: [])
    }

    /// Sets a gauge, or a counter whose value is read elsewhere.
    ///
    /// - Parameter value: nil omits the series from the exposition.
    package func set(_ metric: Metric, _ labels: any MetricLabel..., to value: Double?) {
        let cell = cell(metric, labels) { metric in
            if case .histogram = metric.kind { nil } else { .gauge(GaugeCell()) }
        }
        if case .gauge(let gauge) = cell { gauge.set(value ?? .nan) }
    }

    private func cell(_ metric: Metric, _ labels: [any MetricLabel], make: (Metric) -> Cell?) -> Cell? {
        families.withLock { families in
            guard let metric = families[metric]?.metric, labels.map({ type(of: $0).labelName }) == metric.labels.map({ $0.labelName })
            else { return nil }
            let values = labels.map(\.labelValue)
            if let known = families[metric]?.series.first(where: { $0.values == values }) { return known.cell }
            guard let cell = make(metric) else { return nil }
            families[metric]?.series.append(Series(values: values, cell: cell))
            return cell
        }
    }
}
