/// A label of a metric. Its cases are all of its possible values, so keys, tokens and external text cannot become label values.
package protocol MetricLabel: CaseIterable, RawRepresentable<String>, Sendable {
    static var labelName: String { get }
}

extension [any MetricLabel] {
    /// Name and value in the form used by swift-metrics.
    var dimensions: [(String, String)] {
        map { label in (type(of: label).labelName, label.rawValue) }
    }
}
