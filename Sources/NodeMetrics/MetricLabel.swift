/// A label of a metric. Its cases are all the values that it can ever have, so no key, no token and no text from outside can get into one.
package protocol MetricLabel: CaseIterable, RawRepresentable<String>, Sendable {
    static var labelName: String { get }
}

extension [any MetricLabel] {
    /// As swift-metrics takes them.
    var dimensions: [(String, String)] {
        map { label in (type(of: label).labelName, label.rawValue) }
    }
}
