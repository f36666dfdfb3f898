import Delivery
import Logging
import NodeAPI
import Storage
import Core
import Waku

/// The connection of a node to its cluster.
extension NodeService {
    /// Passes other nodes' notifications and this node's share of the work to the protocols.
    static func duties(
        _ protocols: [(spoken: any NodeProtocol, service: any ProtocolService)], _ sorter: MessageSorter, _ logger: Logger
    ) -> ClusterDuties {
        @Sendable func services(of number: ProtocolNumber) -> [any ProtocolService] {
            protocols.filter { $0.spoken.number == number }.map(\.service)
        }
        let all = protocols.map(\.service)
        return ClusterDuties(
            deliver: { await sorter.deliver($0) },
            registered: { number, name in for service in services(of: number) { service.registeredElsewhere(name) } },
            recordUsage: { number, name, cost in for service in services(of: number) { service.recordSharedLimitUsage(name, cost: cost) } },
            nodeCountChanged: { count in for service in all { service.nodeCountChanged(count) } },
            keyShareChanged: { share in for service in all { service.keyShareChanged(share) } },
            reload: {
                do throws(StoreError) {
                    for service in all { try await service.reload() }
                    return true
                } catch {
                    logger.error("changes of other nodes not read", metadata: ["reason": "\(error.message)"])
                    return false
                }
            })
    }
}
