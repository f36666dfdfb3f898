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

extension Sequence<MetricGroup> {
    /// The lines of the table in the article on metrics.
    package var markdownTable: [String] {
        let rows = flatMap(\.metrics).map { metric in
            let labels = metric.labels.map { "`\($0.labelName)`" }.joined(separator: ", ")
            return "| `\(metric.name)` | \(metric.typeName) | \(labels.isEmpty ? "–" : labels) | \(metric.help) |"
        }
        return ["| metric | type | labels | meaning |", "|---|---|---|---|"] + rows
    }
}
