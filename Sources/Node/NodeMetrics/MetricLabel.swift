/// A label of a metric. Its cases are all its possible values, so keys, tokens and text from outside can't become label values.
package protocol MetricLabel: CaseIterable, RawRepresentable<String>, Sendable {
    static var labelName: String { get }
}

extension [any MetricLabel] {
    /// In the form of swift-metrics.
    var dimensions: [(String, String)] {
        map { label in (type(of: label).labelName, label.rawValue) }
    }
}
