/// The metrics and counters that one module declares. The composition root passes all groups of the node to ``Counters``: metrics and counters
/// in no group are not collected.
public struct MetricGroup: Sendable {
    package let metrics: [Metric]
    package let counters: [Counter]

    package init(metrics: [Metric] = [], counters: [Counter] = []) {
        self.metrics = metrics
        self.counters = counters
    }
}
