package import NodeAPI
import NodeMetrics
import Storage

extension ProtocolDescription {
    /// Status as deployed.
    package static let status = ProtocolDescription(
        name: StatusPush.protocolName, number: StatusStorage.protocolNumber, part: StatusStorage.part,
        metrics: [.status, .queryTopics, .identities], makeDeliverySource: { StatusDeliverySource($0) })
}
