import CoreMetrics

extension MetricRegistry {
    package func counter(_ metric: Metric, _ labels: any MetricLabel...) -> CounterCell { cell(metric, labels) }
    package func histogram(_ metric: Metric, _ labels: any MetricLabel...) -> HistogramCell { histogramCell(metric, labels) }

    func cell(_ metric: Metric, _ labels: [any MetricLabel]) -> CounterCell { counter(metric.name, labels.dimensions) }
    func histogramCell(_ metric: Metric, _ labels: [any MetricLabel]) -> HistogramCell { histogram(metric.name, labels.dimensions) }

    /// Sets a gauge, or a counter whose value is read elsewhere.
    package func set(_ metric: Metric, _ labels: any MetricLabel..., to value: Double?) {
        makeMeter(label: metric.name, dimensions: labels.dimensions).set(value ?? .nan)
    }
}
