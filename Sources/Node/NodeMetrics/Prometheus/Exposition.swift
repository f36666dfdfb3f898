/// The text formats in which metrics are scraped.
package enum ExpositionFormat: Hashable, Sendable {
    /// Prometheus' text format, 0.0.4.
    case text
    /// OpenMetrics 1.0: counters are declared without `_total`, units are declared, and the end is marked.
    case openMetrics

    package var contentType: String {
        switch self {
        case .text: "text/plain; version=0.0.4; charset=utf-8"
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        }
    }

    /// Negotiates the format: OpenMetrics when it is accepted with at least the weight of the text format.
    ///
    /// - Parameter accept: The value of the `Accept` header, `type/subtype;q=0.5, …`; nil when there is none.
    package init(accept: String?) {
        var weights: [Substring: Double] = [:]
        for range in (accept ?? "").lowercased().split(separator: ",") {
            let parts = range.split(separator: ";").map { part in
                part.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }
            }
            guard let type = parts.first else { continue }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
            weights[type] = max(weights[type] ?? 0, weight)
        }
        let openMetrics = weights["application/openmetrics-text"] ?? 0
        let text = weights["text/plain"] ?? 0
        self = openMetrics > 0 && openMetrics >= text ? .openMetrics : .text
    }
}

extension MetricRegistry {
    /// The current values of all metrics. Metrics without series are omitted.
    package func exposition(as format: ExpositionFormat) -> String {
        var writer = ExpositionWriter(format: format)
        for family in all { writer.write(family) }
        return writer.finished()
    }
}

/// Writes metric families one by one. The formats differ only in the headers and the end marker.
struct ExpositionWriter {
    private let format: ExpositionFormat
    private var text = ""

    init(format: ExpositionFormat) {
        self.format = format
        text.reserveCapacity(64 << 10)
    }

    mutating func write(_ family: MetricRegistry.Family) {
        let metric = family.metric
        let shown = family.series.filter { series in
            if case .gauge(let gauge) = series.cell { !gauge.value.isNaN } else { true }
        }
        guard !shown.isEmpty else { return }
        let name = format == .openMetrics ? metric.family : metric.name
        text += "# HELP \(name) \(Self.escaped(metric.help, quotes: format == .openMetrics))\n"
        text += "# TYPE \(name) \(metric.typeName)\n"
        if format == .openMetrics, let unit = metric.unit { text += "# UNIT \(name) \(unit)\n" }
        for series in shown {
            let labels = zip(metric.labels, series.values).map { "\($0.labelName)=\"\(Self.escaped($1, quotes: true))\"" }
            switch series.cell {
            case .counter(let counter): sample(metric.name, labels: labels, value: "\(counter.value)")
            case .gauge(let gauge): sample(metric.name, labels: labels, value: Self.number(gauge.value))
            case .histogram(let histogram): write(histogram, of: metric, labels: labels)
            }
        }
    }

    private mutating func write(_ histogram: HistogramCell, of metric: Metric, labels: [String]) {
        guard case .histogram(let bounds) = metric.kind else { return }
        let counts = histogram.cumulativeCounts
        for (bound, count) in zip(bounds + [.infinity], counts) {
            sample(metric.name + "_bucket", labels: labels + ["le=\"\(Self.number(bound))\""], value: "\(count)")
        }
        sample(metric.name + "_sum", labels: labels, value: Self.number(histogram.seconds))
        sample(metric.name + "_count", labels: labels, value: "\(counts.last ?? 0)")
    }

    private mutating func sample(_ name: String, labels: [String], value: String) {
        text += name
        if !labels.isEmpty { text += "{" + labels.joined(separator: ",") + "}" }
        text += " " + value + "\n"
    }

    consuming func finished() -> String {
        format == .openMetrics ? text + "# EOF\n" : text
    }

    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return "\(value)"
    }

    /// - Parameter quotes: Whether to escape quotes too, as in label values and in the help texts of OpenMetrics.
    static func escaped(_ text: String, quotes: Bool) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quotes: escaped += "\\\""
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
