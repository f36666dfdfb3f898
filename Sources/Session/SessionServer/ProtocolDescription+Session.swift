package import NodeAPI
import NodeMetrics
import Storage

extension ProtocolDescription {
    /// Session's push server.
    package static let session = ProtocolDescription(
        name: SessionPush.protocolName, number: SessionStorage.protocolNumber, part: SessionStorage.part, metrics: [.session],
        prescribesContent: true, makeDeliverySource: { SessionDeliverySource($0, apnsTopic: "") })
}
