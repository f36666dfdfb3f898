/// A metric: name, help, type and labels in one declaration.
///
/// Any module declares its own as static members in an extension, and lists them in a ``MetricGroup``:
///
///     extension Metric {
///         package static let posts = Metric("echo_posts_total", PostClassLabel.self, help: "Posts, by result.")
///     }
package struct Metric: Hashable, Sendable, CustomStringConvertible {
    package enum Kind: Hashable, Sendable {
        case counter
        case gauge
        /// - Parameter bounds: The upper bounds of the buckets in seconds, ascending, without infinity.
        case histogram(bounds: [Double])
    }

    /// The exposed name. Names of counters end in `_total`.
    package let name: String
    /// A sentence that describes the value.
    package let help: String
    package let kind: Kind
    /// The types of its labels.
    package let labels: [any MetricLabel.Type]

    /// - Parameters:
    ///   - name: The exposed name. If it ends in `_total`, the metric is a counter.
    ///   - labels: The types of its labels, in the order of exposition.
    ///   - buckets: For a histogram: the upper bounds in seconds, ascending, without infinity. nil for a counter or a gauge, depending on the name.
    package init(_ name: String, _ labels: any MetricLabel.Type..., buckets: [Double]? = nil, help: String) {
        self.name = name
        self.help = help
        self.labels = labels
        kind = buckets.map { .histogram(bounds: $0) } ?? (name.hasSuffix("_total") ? .counter : .gauge)
    }

    var typeName: String {
        switch kind {
        case .counter: "counter"
        case .gauge: "gauge"
        case .histogram: "histogram"
        }
    }

    package var description: String { name }

    package static func == (left: Metric, right: Metric) -> Bool { left.name == right.name }
    package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}
