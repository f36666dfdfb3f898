import NodeMetrics

extension MetricGroup {
    /// The groups of all modules of the node, in the order in which their metrics are shown. A module that declares its own is listed here.
    static let all: [MetricGroup] = [.messages, .status, .answers, .delivery, .feedback, .registrations, .relay, .node, .process]
}
