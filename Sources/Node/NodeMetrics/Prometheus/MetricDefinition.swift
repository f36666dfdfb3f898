/// The static description of a metric.
package struct MetricDefinition: Hashable, Sendable {
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
    /// The names of the labels of each series.
    package var labels: [String] = []

    /// The unit for OpenMetrics, taken from the end of the name.
    package var unit: String? {
        ["seconds", "bytes"].first { family.hasSuffix("_" + $0) }
    }

    /// The name without `_total`.
    var family: String {
        kind == .counter && name.hasSuffix("_total") ? String(name.dropLast("_total".count)) : name
    }

    package var typeName: String {
        switch kind {
        case .counter: "counter"
        case .gauge: "gauge"
        case .histogram: "histogram"
        }
    }
}
