/// A metric: name, help, type and labels in one declaration.
///
/// Any module declares its own as static members in an extension, and lists them in a ``MetricGroup``:
///
///     extension Metric {
///         package static let posts = Metric("echo_posts_total", PostClassLabel.self, help: "Posts, by result.")
///     }
package struct Metric: Hashable, Sendable, CustomStringConvertible {
    package let definition: MetricDefinition
    /// The types of its labels.
    package let labels: [any MetricLabel.Type]

    /// - Parameters:
    ///   - name: The exposed name. If it ends in `_total`, the metric is a counter.
    ///   - labels: The types of its labels, in the order of exposition.
    ///   - buckets: For a histogram: the upper bounds in seconds, ascending, without infinity. nil for a counter or a gauge, depending on the name.
    package init(_ name: String, _ labels: any MetricLabel.Type..., buckets: [Double]? = nil, help: String) {
        self.labels = labels
        definition = MetricDefinition(
            name: name, help: help, kind: buckets.map { .histogram(bounds: $0) } ?? (name.hasSuffix("_total") ? .counter : .gauge),
            labels: labels.map { $0.labelName })
    }

    package var name: String { definition.name }
    package var description: String { name }

    package static func == (left: Metric, right: Metric) -> Bool { left.definition == right.definition }
    package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}
