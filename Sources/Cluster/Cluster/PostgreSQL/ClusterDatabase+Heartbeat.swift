import Core
package import Storage
import StorePostgreSQL

extension ClusterDatabase {
    /// Notified when a node releases partitions, so that the others need not wait for their next heartbeat to take them.
    package static let partitionsChannel = "partitions"

    /// Executes a heartbeat, with the parts that `Cluster/Heartbeat` lists, in a transaction.
    ///
    /// Except for the node's own row, it does not wait for rows that another transaction has locked: it skips changes of such rows, and the returned
    /// view shows that. So a node that was stopped in a transaction does not delay the heartbeats of the nodes that take over.
    ///
    /// - Throws: `StoreError` if the transaction was not committed, or its outcome is unknown.
    package func heartbeat(_ heartbeat: Heartbeat) throws(StoreError) -> ClusterView {
        try heartbeats.transaction { connection in
            guard try connection.run(renewal(heartbeat)).changedCount == 1 else {
                return ClusterView(isMember: false, leases: [], partitions: [])
            }
            let changes = try changes(of: heartbeat, connection)
            let partitions = Statement("SELECT partition, owner, epoch FROM cluster_partition ORDER BY partition")
            // Read after the partitions, so that an owner without a lease has ended.
            let leases = Statement(
                "SELECT node, renewals, state, name, hashing_version, gorush_timeout, "
                    + "coalesce(monitors_accounts, false)::integer::bigint, settings, "
                    + "(\(isOverdue))::integer::bigint "
                    + "FROM cluster_node ORDER BY node")
            let asked = Instant.now
            let found = try connection.run(changes + [Self.preciseClock, partitions, leases]).suffix(3).map(
                \.rows)
            guard let time = found[0].first else { throw UnexpectedValue() }
            var view = try view(partitions: found[1], leases: found[2])
            view.clock = ClusterView.Clock(time: .microseconds(try time.integer(0)), askedAt: asked, receivedAt: .now)
            view.timeline = connection.timeline
            return view
        }
    }

    /// Whether a lease was not renewed for its whole duration, by the database's clock. SQL, on a row of `cluster_node`.
    var isOverdue: String { "renewed_at < clock_timestamp() - interval '\(Int64(configuration.lease / .milliseconds(1))) milliseconds'" }

    private func renewal(_ heartbeat: Heartbeat) -> Statement {
        let update =
            "renewals = cluster_node.renewals + 1, state = $2, name = $3, version = $4, hashing_version = $5, gorush_timeout = $6, "
            + "monitors_accounts = $7::bigint = 1, settings = $8, renewed_at = clock_timestamp()"
        // The first heartbeat may be a repetition after an unknown outcome.
        let sql =
            if heartbeat.isFirst {
                """
                INSERT INTO cluster_node (node, renewals, state, name, version, hashing_version, gorush_timeout, monitors_accounts, settings, renewed_at) \
                VALUES ($1, 1, $2, $3, $4, $5, $6, $7::bigint = 1, $8, clock_timestamp()) \
                ON CONFLICT (node) DO UPDATE SET \(update) WHERE cluster_node.state <> 'ended'
                """
            } else {
                "UPDATE cluster_node SET \(update) WHERE node = $1 AND state <> 'ended'"
            }
        let lease = heartbeat.lease
        return Statement(
            sql,
            [
                .integer(lease.node.stored), .text(lease.state.rawValue), .text(lease.name), .text(version),
                .integer(Int64(lease.hashingVersion)), .integer(Int64(lease.gorushTimeout / .milliseconds(1))),
                .integer(lease.offersKeys ? 1 : 0), .text(lease.settingsText ?? ""),
            ])
    }

    /// The heartbeat's changes apart from the node's own lease, limited to the rows that could be locked.
    private func changes(of heartbeat: Heartbeat, _ connection: PostgreSQLConnection) throws -> [Statement] {
        let numbers = heartbeat.releases.map(\.partition) + heartbeat.takes.map(\.partition)
        guard !heartbeat.ends.isEmpty || !numbers.isEmpty else { return [] }
        let lockNodes = Statement(
            "SELECT node FROM cluster_node WHERE node = ANY($1) ORDER BY node FOR NO KEY UPDATE SKIP LOCKED",
            [.integers(heartbeat.ends.map(\.node.stored))])
        let lockPartitions = Statement(
            "SELECT partition FROM cluster_partition WHERE partition = ANY($1) ORDER BY partition FOR NO KEY UPDATE SKIP LOCKED",
            [.integers(numbers.map(Int64.init))])
        let locked = try connection.run([lockNodes, lockPartitions]).map { try $0.rows.map { try $0.integer(0) } }
        let (nodes, partitions) = (Set(locked[0]), Set(locked[1]))

        let own = heartbeat.lease.node
        let releases = heartbeat.releases.filter { partitions.contains(Int64($0.partition)) }
        let notify = Statement("SELECT pg_notify('\(Self.partitionsChannel)_' || \(Self.schemaID), '')")
        return [
            end(heartbeat.ends.filter { nodes.contains($0.node.stored) }),
            removeMarks(releases.filter(\.isSettled), of: own), release(releases, of: own),
            take(heartbeat.takes.filter { partitions.contains(Int64($0.partition)) }, for: own),
        ] + (releases.isEmpty ? [] : [notify])
    }

    private func end(_ ends: [Heartbeat.LeaseEnd]) -> Statement {
        Statement(
            """
            UPDATE cluster_node n SET state = 'ended', ended_at = clock_timestamp() \
            FROM unnest($1, $2) AS observed (node, renewals) \
            WHERE n.node = observed.node AND n.renewals = observed.renewals AND n.state <> 'ended'
            """, [.integers(ends.map(\.node.stored)), .integers(ends.map { Int64(bitPattern: $0.renewals) })])
    }

    /// Removes the node's marks in released partitions. Must precede the release, since it applies only to partitions that the node owns.
    private func removeMarks(_ releases: [Heartbeat.Release], of own: NodeID) -> Statement {
        Statement(
            """
            DELETE FROM cluster_mark m USING unnest($1, $2) AS released (partition, epoch), cluster_partition p, \(outbox.table.quoted) o \
            WHERE p.partition = released.partition AND p.epoch = released.epoch AND p.owner = $3 \
            AND m.node = $3 AND m.epoch = released.epoch AND o.id = m.row_id \
            AND \(partition(of: outbox.device, in: "o")) = released.partition
            """, epochs(releases.map { ($0.partition, $0.epoch) }) + [.integer(own.stored)])
    }

    private func release(_ releases: [Heartbeat.Release], of own: NodeID) -> Statement {
        Statement(
            """
            UPDATE cluster_partition p SET owner = NULL FROM unnest($1, $2) AS released (partition, epoch) \
            WHERE p.partition = released.partition AND p.epoch = released.epoch AND p.owner = $3
            """, epochs(releases.map { ($0.partition, $0.epoch) }) + [.integer(own.stored)])
    }

    private func take(_ takes: [Heartbeat.Take], for own: NodeID) -> Statement {
        Statement(
            """
            UPDATE cluster_partition p SET owner = $3, epoch = p.epoch + 1 FROM unnest($1, $2) AS observed (partition, epoch) \
            WHERE p.partition = observed.partition AND p.epoch = observed.epoch \
            AND NOT EXISTS (SELECT FROM cluster_node n WHERE n.node = p.owner AND n.state <> 'ended')
            """, epochs(takes.map { ($0.partition, $0.observedEpoch) }) + [.integer(own.stored)])
    }

    private func epochs(_ rows: [(PartitionNumber, UInt64)]) -> [Statement.Argument] {
        [.integers(rows.map { Int64($0.0) }), .integers(rows.map { Int64(bitPattern: $0.1) })]
    }

    private func view(partitions: [Row], leases: [Row]) throws -> ClusterView {
        try checkPartitionRows(partitions.count)
        return ClusterView(
            isMember: true, leases: try leases.map(LeaseRow.init(stored:)),
            partitions: try partitions.map { row in
                PartitionRow(owner: try row.optionalInteger(1).map(NodeID.init(stored:)), epoch: try row.unsigned(2))
            })
    }

    /// Versions may differ in their number of partitions.
    func checkPartitionRows(_ count: Int) throws(StoreError) {
        let expected = configuration.partitionRowCount
        guard count != expected else { return }
        // A node makes the rows again only when there are none: with other nodes running, it can't know the epochs of missing ones.
        throw StoreError(
            code: .unsuitable,
            message: count > expected
                ? "PostgreSQL (\(address)) has the partitions of another version of waku-push: run the version that the other nodes run"
                : "PostgreSQL (\(address)) has \(count) of \(expected) rows in cluster_partition: run the version that the other nodes run; if rows "
                    + "were deleted, stop all nodes, DELETE FROM cluster_partition, and start them: the first one makes all rows again")
    }
}

extension LeaseRow {
    /// - Throws: ``Storage/UnexpectedValue``
    fileprivate init(stored row: Row) throws {
        guard let state = State(rawValue: try row.text(2)) else { throw UnexpectedValue() }
        self.init(
            node: NodeID(stored: try row.integer(0)), renewals: try row.unsigned(1), state: state, name: try row.text(3),
            hashingVersion: Int(try row.integer(4)), gorushTimeout: .milliseconds(try row.integer(5)),
            offersKeys: try row.integer(6) == 1, settings: try row.optionalText(7).flatMap(LeaseRow.settings(parsing:)),
            isOverdue: try row.integer(8) == 1)
    }
}

extension NodeID {
    var stored: Int64 { Int64(bitPattern: rawValue) }

    init(stored: Int64) {
        self.init(rawValue: UInt64(bitPattern: stored))
    }
}

extension Row {
    fileprivate func optionalText(_ index: Int) throws(UnexpectedValue) -> String? {
        values[index] == .null ? nil : try text(index)
    }
}
