/// A protocol of the node: the label of metrics shared by several protocols.
package enum ProtocolLabel: String, MetricLabel {
    package static let labelName = "protocol"
    /// Status as deployed.
    case status
    /// Version 0.1 of Status' service.
    case statusV01 = "status-v0.1"
    case session
    /// Any other protocol.
    case other
    /// Shared by all protocols of a node.
    case shared
}
