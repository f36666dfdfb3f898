package import Cluster
import Core
package import Storage
import StorePostgreSQL

extension ClusterDatabase {
    /// How long leases that ended are kept.
    private static let endedRetention = Duration.seconds(3600)
    /// Dropping a partition waits for everybody who uses claims, and others who want to use them wait for it.
    private static let lockLimit = Duration.milliseconds(300)

    /// What only one node may do, in transactions that have the ownership of the partition for maintenance as their condition: partitions of
    /// claims, leases that ended an hour ago, finished messages of nodes that are gone, and old logged changes.
    ///
    /// - Parameters:
    ///   - owner: of the partition for maintenance.
    ///   - epoch: of that ownership: see `Cluster/ClusterMember/maintenanceMark(at:)`.
    /// - Returns: false when that is not the owner any more; then nothing is changed.
    /// - Throws: `StoreError` when not all was committed, or that is not known. May be repeated.
    package func maintain(owner: NodeID, epoch: UInt64) throws(StoreError) -> Bool {
        let isOwner = try maintenance.transaction { connection in
            guard try isOwned(owner, epoch, connection) else { return false }
            try createClaimPartitions(connection)
            _ = try connection.run([
                // A process that joined again goes on under its first id: only old rows are deleted.
                prune(
                    """
                    DELETE FROM cluster_finished f WHERE written_at < now() - $1 * interval '1 second' \
                    AND NOT EXISTS (SELECT FROM cluster_node n WHERE n.node = f.node AND n.state <> 'ended')
                    """, configuration.finishedRetention),
                prune("DELETE FROM cluster_change WHERE at < clock_timestamp() - $1 * interval '1 second'", configuration.changeRetention),
                prune(
                    "DELETE FROM cluster_node WHERE state = 'ended' AND ended_at < now() - $1 * interval '1 second'", Self.endedRetention),
            ])
            return true
        }
        guard isOwner else { return false }
        // By itself: a backup may be using the old partitions for longer than new ones can wait.
        return try maintenance.transaction(lockLimit: Self.lockLimit) { connection in
            guard try isOwned(owner, epoch, connection) else { return false }
            try dropClaimPartitions(connection)
            return true
        }
    }

    /// Whether the partition for maintenance is this ownership's, until the end of the transaction.
    private func isOwned(_ owner: NodeID, _ epoch: UInt64, _ connection: PostgreSQLConnection) throws -> Bool {
        let select = Statement(
            "SELECT partition FROM cluster_partition WHERE partition = $1 AND owner = $2 AND epoch = $3 FOR SHARE",
            [.integer(Int64(configuration.maintenancePartition)), .integer(owner.stored), .integer(Int64(bitPattern: epoch))])
        return try !connection.run(select).rows.isEmpty
    }

    /// Ends a lease before it runs out: whoever holds it does nothing under it any more.
    ///
    /// - Throws: `StoreError`
    package func leave(_ node: NodeID) throws(StoreError) {
        try heartbeats.transaction { connection in
            let end = Statement(
                "UPDATE cluster_node SET state = 'ended', ended_at = clock_timestamp() WHERE node = $1 AND state <> 'ended'",
                [.integer(node.stored)])
            _ = try connection.run(end)
        }
    }

    private func prune(_ sql: String, _ retention: Duration) -> Statement {
        Statement(sql, [.integer(retention.components.seconds)])
    }
}
