package import Storage
import StorePostgreSQL
import Synchronization

extension ClusterDatabase {
    /// How long ended leases are kept.
    private static let endedRetention = Duration.seconds(3600)
    /// The maximum time to wait for a lock when dropping a claim partition: the drop waits for all transactions that use claims, and new ones wait
    /// for the drop.
    private static let lockLimit = Duration.milliseconds(300)

    /// Runs the maintenance that only one node may run: creates and drops claim partitions, deletes leases that ended an hour ago, finished
    /// messages of ended nodes and old logged changes, and ends listeners that are not read. Each transaction checks the ownership of the
    /// maintenance partition.
    ///
    /// - Parameters:
    ///   - epoch: the epoch of that ownership: see `Cluster/ClusterMember/maintenanceMark(at:)`.
    /// - Returns: false if the node is no longer the owner; a transaction that finds this changes nothing.
    /// - Throws: `StoreError` if a transaction was not committed, or its outcome is unknown. The call may be repeated.
    package func maintain(owner: NodeID, epoch: UInt64) throws(StoreError) -> Bool {
        try maintenance.transaction { connection in
            guard try isOwned(owner, epoch: epoch, on: connection) else { return }
            try createClaimPartitions(connection)
            _ = try connection.run([
                // A process that joined again keeps using its first id, so only old rows are deleted.
                prune(
                    """
                    DELETE FROM cluster_finished f WHERE written_at < now() - $1 * interval '1 second' \
                    AND NOT EXISTS (SELECT FROM cluster_node n WHERE n.node = f.node AND n.state <> 'ended')
                    """, configuration.finishedRetention),
                prune("DELETE FROM cluster_change WHERE at < clock_timestamp() - $1 * interval '1 second'", configuration.changeRetention),
                prune(
                    "DELETE FROM cluster_node WHERE state = 'ended' AND ended_at < now() - $1 * interval '1 second'", Self.endedRetention),
            ])
            try endUnreadListeners(connection)
        }
        // In a separate transaction: a backup may hold locks on old partitions longer than the creation of new ones can wait.
        return try maintenance.transaction(lockLimit: Self.lockLimit) { connection in
            guard try isOwned(owner, epoch: epoch, on: connection) else { return false }
            try dropClaimPartitions(connection)
            return true
        }
    }

    /// Whether the node owns the maintenance partition in this epoch. If so, this holds until the end of the transaction.
    private func isOwned(_ owner: NodeID, epoch: UInt64, on connection: PostgreSQLConnection) throws -> Bool {
        let select = Statement(
            "SELECT partition FROM cluster_partition WHERE partition = $1 AND owner = $2 AND epoch = $3 FOR SHARE",
            [.integer(Int64(configuration.maintenancePartition)), .integer(owner.stored), .integer(Int64(bitPattern: epoch))])
        return try !connection.run(select).rows.isEmpty
    }

    /// Ends a lease before it expires. The node must have stopped all work that needs the lease. Counts as a renewal, so that other nodes do not take it
    /// for one that expired: ``FailoverLog``.
    package func leave(_ node: NodeID) throws(StoreError) {
        try heartbeats.transaction { connection in
            let end = Statement(
                "UPDATE cluster_node SET state = 'ended', renewals = renewals + 1, ended_at = clock_timestamp() WHERE node = $1 AND state <> 'ended'",
                [.integer(node.stored)])
            _ = try connection.run(end)
        }
    }

    /// Ends the connections for notifications of suspended nodes: those that were not read at the last maintenance either. PostgreSQL keeps the
    /// notifications of all databases that one of its sessions can't send; with 8 GiB of them, every transaction that notifies fails. A session that
    /// blocks within a transaction also lets no `VACUUM` remove rows of this database. Neither PostgreSQL's time limits nor, on Unix sockets, those
    /// of TCP end such a session, and no column tells since when it waits.
    private func endUnreadListeners(_ connection: PostgreSQLConnection) throws {
        let began = "(extract(epoch FROM backend_start) * 1000000)::bigint"
        let waiting =
            "FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database() AND usename = current_user AND wait_event = 'ClientWrite'"
        let name = Statement.Argument.text(ClusterListener.sessionName)
        let found = Set(try connection.run(Statement("SELECT \(began) \(waiting)", [name])).rows.map { try $0.integer(0) })
        let former = unreadListeners.withLock { unread in
            defer { unread = found }
            return found.intersection(unread)
        }
        guard !former.isEmpty else { return }
        _ = try connection.run(
            Statement("SELECT count(pg_terminate_backend(pid)) \(waiting) AND \(began) = ANY($2)", [name, .integers(former.sorted())]))
    }

    private func prune(_ sql: String, _ retention: Duration) -> Statement {
        Statement(sql, [.integer(retention.components.seconds)])
    }
}
