extension MetricRegistry {
    package static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// The current values of all metrics in Prometheus' text format, 0.0.4. Metrics without series are omitted.
    package func exposition() -> String {
        var writer = ExpositionWriter()
        for family in all { writer.write(family) }
        return writer.text
    }
}

/// Writes metric families one by one.
struct ExpositionWriter {
    private(set) var text = ""

    init() { text.reserveCapacity(64 << 10) }

    mutating func write(_ family: MetricRegistry.Family) {
        let metric = family.metric
        let shown = family.series.filter { series in
            if case .gauge(let gauge) = series.cell { !gauge.value.isNaN } else { true }
        }
        guard !shown.isEmpty else { return }
        text += "# HELP \(metric.name) \(Self.escaped(metric.help, quotes: false))\n"
        text += "# TYPE \(metric.name) \(metric.typeName)\n"
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

    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return "\(value)"
    }

    /// - Parameter quotes: Whether to escape quotes too, as in label values.
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
