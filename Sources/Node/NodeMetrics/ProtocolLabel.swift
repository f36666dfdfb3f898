/// A protocol of the node: the label of metrics that several protocols count under.
package enum ProtocolLabel: String, MetricLabel {
    package static let labelName = "protocol"
    /// Status as deployed.
    case status
    /// Version 0.1 of Status' service.
    case statusV01 = "status-v0.1"
    case session
    /// Any other protocol.
    case other
    /// What all protocols of a node share.
    case shared
}
