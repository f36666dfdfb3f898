/// A label of a metric. Its cases are all of its possible values, so keys, tokens and external text cannot become label values.
package protocol MetricLabel: CaseIterable, Sendable {
    static var labelName: String { get }
    var labelValue: String { get }
}

extension MetricLabel where Self: RawRepresentable<String> {
    package var labelValue: String { rawValue }
}
