package import NodeMetrics

extension ProtocolLabel {
    /// Version 0.1 of Status' service.
    package static let statusV01 = ProtocolLabel(StatusPushV01.protocolName)
}
