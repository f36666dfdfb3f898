package import Storage
import StorePostgreSQL

/// The nodes and their partitions, for operators.
package struct ClusterOverview: Hashable, Sendable {
    package struct Node: Hashable, Sendable {
        package let id: NodeID
        package let name: String
        package let state: LeaseRow.State
        /// See ``LeaseRow/stateName``; `not renewed` if the lease is over and no other node has ended it, as after all nodes were killed.
        package let stateName: String
        package let version: String
        package let hashingVersion: Int
        /// The time since the last renewal, by the database's clock.
        package let secondsSinceRenewal: Int64
        /// The number of device partitions that the node owns.
        package let partitionCount: Int
        /// Whether the node runs the maintenance that only one node may run at a time. Not one whose lease is over.
        package let isMaintainer: Bool
    }

    /// The nodes, sorted by name, including nodes that ended within the last hour.
    package let nodes: [Node]
    /// The number of device partitions without an owner, or with one whose lease is over.
    package let unownedPartitionCount: Int
    /// Whether a node runs maintenance.
    package let hasMaintainer: Bool

    /// The nodes without former processes: of those of one name that ended, only the latest, and none while the name has a lease.
    package var latestNodes: [Node] {
        let running = Set(nodes.lazy.filter { $0.state != .ended }.map(\.name))
        let ended = nodes.filter { $0.state == .ended && !running.contains($0.name) }
        let latest = Dictionary(grouping: ended, by: \.name).mapValues { $0.min { $0.secondsSinceRenewal < $1.secondsSinceRenewal } }
        return nodes.filter { $0.state != .ended || latest[$0.name] == $0 }
    }
}

extension ClusterDatabase {
    /// Reads the current overview.
    ///
    /// - Throws: `StoreError`; with `missing` if no node of a cluster has used this database.
    package func overview() throws(StoreError) -> ClusterOverview {
        let maintenance = Statement.Argument.integer(Int64(configuration.maintenancePartition))
        // The settings as JSON: only a node adds the column to the table of an earlier release, and this reads that table, too.
        let hasLease = "n.state <> 'ended' AND NOT n.\(isOverdue)"
        let nodes = Statement(
            """
            SELECT node, name, state, version, hashing_version, \
            floor(extract(epoch FROM clock_timestamp() - renewed_at))::bigint, \
            (SELECT count(*) FROM cluster_partition p WHERE p.owner = n.node AND p.partition <> $1), \
            (SELECT count(*) FROM cluster_partition p WHERE p.owner = n.node AND p.partition = $1 AND \(hasLease)), \
            coalesce(to_jsonb(n) ->> 'settings', ''), \
            (state <> 'ended' AND \(isOverdue))::integer::bigint \
            FROM cluster_node n ORDER BY name, node
            """, [maintenance])
        let unowned = Statement(
            """
            SELECT count(*) FILTER (WHERE partition <> $1), count(*) FILTER (WHERE partition = $1) FROM cluster_partition p \
            WHERE NOT EXISTS (SELECT FROM cluster_node n WHERE n.node = p.owner AND \(hasLease))
            """, [maintenance])
        return try deliveries.read([nodes, unowned]) { found in
            guard let count = found[1].first else { throw UnexpectedValue() }
            return ClusterOverview(
                nodes: try found[0].map(ClusterOverview.Node.init(stored:)), unownedPartitionCount: Int(try count.integer(0)),
                hasMaintainer: try count.integer(1) == 0)
        }
    }

    /// How many rows of the outbox the nodes have, by their names. Rows of partitions without an owner are not counted.
    ///
    /// - Parameter rows: the counted rows; nil: all.
    package func waitingCounts(among rows: [Int64]?) throws(StoreError) -> [String: Int] {
        let count = Statement(
            """
            SELECT n.name, count(*) FROM \(outbox.table.quoted) o \
            JOIN cluster_partition p ON p.partition = \(partition(of: outbox.device, in: "o")) JOIN cluster_node n ON n.node = p.owner \
            WHERE n.state <> 'ended' \(rows == nil ? "" : "AND o.id = ANY($1) ")GROUP BY n.name
            """, rows.map { [.integers($0)] } ?? [])
        return try deliveries.read([count]) { found in
            Dictionary(try found[0].map { (try $0.text(0), Int(try $0.integer(1))) }, uniquingKeysWith: +)
        }
    }
}

extension ClusterOverview.Node {
    fileprivate init(stored row: Row) throws {
        guard let state = LeaseRow.State(rawValue: try row.text(2)) else { throw UnexpectedValue() }
        self.init(
            id: NodeID(stored: try row.integer(0)), name: try row.text(1), state: state,
            stateName: try row.integer(9) == 1 ? "not renewed" : LeaseRow.stateName(state, LeaseRow.settings(parsing: try row.text(8))),
            version: try row.text(3),
            hashingVersion: Int(try row.integer(4)), secondsSinceRenewal: try row.integer(5), partitionCount: Int(try row.integer(6)),
            isMaintainer: try row.integer(7) > 0)
    }
}
