import Delivery
import Logging
import NodeAPI
import Storage

/// The connection of a node to its cluster.
extension NodeService {
    /// Passes other nodes' notifications and this node's share of the work to the protocols.
    var clusterDuties: ClusterDuties {
        let all = services
        let numbered = zip(base.protocols, all).map { (number: $0.number, service: $1) }
        @Sendable func spoken(by number: ProtocolNumber) -> [any ProtocolService] {
            numbered.filter { $0.number == number }.map(\.service)
        }
        return ClusterDuties(
            delivery: delivery, deliver: path.sorter.deliver,
            registered: { number, name in for service in spoken(by: number) { service.registeredElsewhere(name) } },
            nodeCountChanged: { count in for service in all { service.nodeCountChanged(count) } },
            keyShareChanged: { share in for service in all { service.keyShareChanged(share) } },
            reload: { [logger = base.logger] in
                do throws(StoreError) {
                    for service in all { try await service.reload() }
                    return true
                } catch {
                    logger.error("failed to read changes of other nodes", metadata: ["reason": "\(error.message)"])
                    return false
                }
            })
    }
}
