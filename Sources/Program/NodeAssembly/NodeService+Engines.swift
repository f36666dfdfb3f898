package import Cluster
package import Core
package import Delivery
import Dispatch
package import Logging
package import NodeAPI
package import PushNode
package import Storage
package import Waku

extension NodeService {
    /// Creates a node on one of the store's engines.
    ///
    /// - Parameters:
    ///   - configuration: the node's configuration, without that of its protocols.
    ///   - cluster: set for one of several nodes with the same identity, on a PostgreSQL database.
    ///   - protocols: the node's protocols, at least one, with distinct numbers and names.
    ///   - limits: those of protocols that leave them to the node.
    ///   - knownParts: tables of protocols that the node does not speak now. They are created too, so that commands can read them.
    ///   - gorush: the endpoints, at least one.
    /// - Throws: `StoreError`, ``NodeError`` when the store can't be shared, and errors of `makeRelay`.
    package convenience init(
        _ configuration: NodeConfiguration, at location: StoreLocation = .dataFolder, in cluster: ClusterNode.Configuration? = nil,
        protocols: [any NodeProtocol], limits: [ProtocolNumber: RegistrationLimits] = [:], knownParts: [StorePart] = [],
        gorush: [GorushEndpoint], logger: Logger,
        now: @escaping @Sendable () -> Timestamp = Timestamp.now, makeRelay: (RelayNeeds) throws -> any Relay
    ) throws {
        var configuration = configuration
        configuration.hasDatabaseInDataFolder = location == .dataFolder
        try self.init(
            configuration, protocols: protocols, limits: limits, knownParts: knownParts, gorush: gorush, logger: logger, now: now,
            openStore: { [configuration] parts in
                // A server that hangs is given up after some 12 s.
                let place = if case .postgreSQL(let address) = location { "PostgreSQL (\(address))" } else { configuration.dataPath }
                let notice = DispatchWorkItem { logger.warning("waiting for the database", metadata: ["database": "\(place)"]) }
                DispatchQueue.global().asyncAfter(deadline: .now() + 3, execute: notice)
                defer { notice.cancel() }
                return try location.open(
                    in: configuration.dataPath, storageKey: Sealer.storageKey(of: configuration.identity), parts: parts,
                    isShared: cluster != nil)
            },
            makeCluster: { needs in try location.makeMembership(cluster, for: needs) }, makeRelay: makeRelay)
    }
}

extension StoreLocation {
    /// - Throws: `StoreError`, and ``NodeError`` when the store can't be shared.
    fileprivate func makeMembership(
        _ cluster: ClusterNode.Configuration?, for needs: ClusterNeeds
    ) throws -> any ClusterMembership {
        switch (self, cluster) {
        case (.dataFolder, nil): return SoleMembership()
        case (.dataFolder, _?):
            throw NodeError(message: "several nodes need a PostgreSQL database: give --store, or leave out --cluster")
        case (.postgreSQL(let address), nil):
            // Those of the time when it was one of several.
            try ClusterDatabase.leaveCluster(at: address, outbox: ClusterNode.outbox)
            return SoleMembership()
        case (.postgreSQL(let address), let cluster?): return try ClusterNode(cluster, address, for: needs)
        }
    }
}
