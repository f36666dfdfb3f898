/// What there is to say of a metric, whatever its values are.
public struct MetricDefinition: Hashable, Sendable {
    public enum Kind: Hashable, Sendable {
        case counter
        case gauge
        /// - Parameter bounds: the upper ends of the buckets, ascending, without infinity. In seconds.
        case histogram(bounds: [Double])
    }

    /// As it is scraped: that of a counter ends in `_total`.
    public let name: String
    /// A sentence for whoever reads the figures.
    public let help: String
    public let kind: Kind
    /// Names of the labels that each series of it has.
    public let labels: [String]

    public init(name: String, help: String, kind: Kind, labels: [String] = []) {
        self.name = name
        self.help = help
        self.kind = kind
        self.labels = labels
    }

    /// The unit, which OpenMetrics wants to be told: names end in it.
    public var unit: String? {
        ["seconds", "bytes"].first { family.hasSuffix("_" + $0) }
    }

    /// The name without `_total`.
    var family: String {
        kind == .counter && name.hasSuffix("_total") ? String(name.dropLast("_total".count)) : name
    }

    public var typeName: String {
        switch kind {
        case .counter: "counter"
        case .gauge: "gauge"
        case .histogram: "histogram"
        }
    }
}
