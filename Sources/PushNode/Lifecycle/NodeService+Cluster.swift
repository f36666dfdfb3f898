import ClusterPostgreSQL
import Delivery
import Logging
import NodeMetrics
import Storage
import Waku

/// A node as one of several.
extension NodeService {
    /// - Throws: `StoreError`, and ``NodeError`` when the store can't be shared.
    static func makeCluster(
        _ configuration: NodeConfiguration, _ protocols: [any NodeProtocol], _ gorush: [GorushEndpoint], _ counters: Counters,
        _ clock: ClockMonitor, _ now: @escaping @Sendable () -> Timestamp, _ logger: Logger
    ) throws -> ClusterNode? {
        guard let settings = configuration.cluster else {
            // Nothing is left of the time when it was one of several.
            if case .postgreSQL(let address) = configuration.store { try ClusterDatabase.withdrawNotices(at: address) }
            return nil
        }
        guard case .postgreSQL(let address) = configuration.store else {
            throw NodeError(message: "several nodes need a PostgreSQL database: give --store, or leave out --cluster")
        }
        let registrants = protocols.compactMap { spoken in spoken.registrants.map { (spoken.number, $0) } }
        return try ClusterNode(
            settings, address, gorushTimeout: gorush.map(\.timeout).max() ?? .seconds(60), waitingLimit: configuration.workLimit,
            registrants: Dictionary(uniqueKeysWithValues: registrants), counters: counters, clock: clock,
            now: now, logger: logger)
    }

    /// What other nodes tell, and what they share, goes to the protocols.
    static func hooks(
        _ protocols: [(spoken: any NodeProtocol, service: any ProtocolService)], _ sorter: MessageSorter, _ logger: Logger
    ) -> ClusterNode.Hooks {
        @Sendable func services(of number: ProtocolNumber) -> [any ProtocolService] {
            protocols.filter { $0.spoken.number == number }.map(\.service)
        }
        let all = protocols.map(\.service)
        return ClusterNode.Hooks(
            deliver: { await sorter.deliver($0) },
            registered: { notice in for service in services(of: notice.protocol) { service.registeredElsewhere(notice.name) } },
            taken: { number, name, cost in for service in services(of: number) { service.takenElsewhere(name, cost: cost) } },
            shared: { count in for service in all { service.shared(by: count) } },
            sharedAccounts: { share in for service in all { service.shared(as: share) } },
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
