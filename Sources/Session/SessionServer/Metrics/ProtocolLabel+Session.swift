package import NodeMetrics

extension ProtocolLabel {
    package static let session = ProtocolLabel(SessionPush.protocolName)
}
