package import Storage
package import StorePostgreSQL
import Synchronization

/// The data that nodes of one identity share in a PostgreSQL database: leases, partitions, finished messages and claims. The article of `Cluster`
/// describes each operation; the state machines there decide when to call it.
///
/// Calls block, so they need a thread that may be blocked. Each kind of operation has its own connection, so that heartbeats wait for no other work.
package final class ClusterDatabase: Sendable {
    let address: PostgreSQLAddress
    let configuration: ClusterConfiguration
    let version: String
    let outbox: Outbox
    let primary: PrimaryGuard

    let heartbeats: GuardedConnection
    let finished: GuardedConnection
    let messages: GuardedConnection
    let deliveries: GuardedConnection
    let maintenance: GuardedConnection
    /// The listeners that were not read at the last maintenance, by the microsecond at which their sessions began.
    let unreadListeners = Mutex<Set<Int64>>([])

    /// Opens no connection; each is opened by its first use.
    ///
    /// - Parameter address: the address of the database, which a store must have opened at least once.
    package init(_ address: PostgreSQLAddress, configuration: ClusterConfiguration, outbox: Outbox, version: String = "") {
        self.address = address
        self.configuration = configuration
        self.outbox = outbox
        self.version = version
        primary = PrimaryGuard()
        // A renewal that is committed later does not extend the lease: see `Cluster/OwnLease`.
        let limit = configuration.lease - configuration.leaseMargin
        heartbeats = GuardedConnection(address, for: "heartbeats", primary, timeLimit: limit)
        finished = GuardedConnection(address, for: "finished messages", primary, timeLimit: limit)
        messages = GuardedConnection(address, for: "messages", primary, timeLimit: limit)
        deliveries = GuardedConnection(address, for: "deliveries", primary)
        maintenance = GuardedConnection(address, for: "maintenance", primary)
    }

    /// A listener for channels of ``Notice``s, and for ``partitionsChannel``.
    package func listener(on channels: [String]) -> ClusterListener {
        ClusterListener(address, channels: channels, primary)
    }

    /// Closes the connections. Calls in progress are completed; later calls fail.
    package func close() {
        for connection in [heartbeats, finished, messages, deliveries, maintenance] { connection.close() }
    }

    /// The ids of the rows in the given partitions, ascending.
    ///
    /// - Parameters:
    ///   - column: the column with the partition in its lowest bits: see ``Outbox/device``.
    package func ids(of table: Table, by column: Column, in partitions: [PartitionNumber]) throws(StoreError) -> [Int64] {
        let select = Statement(
            "SELECT id FROM \(table.quoted) WHERE \(partition(of: column)) = ANY($1) ORDER BY id", [.integers(partitions.map(Int64.init))])
        return try deliveries.read([select]) { found in try found[0].map { try $0.integer(0) } }
    }

    /// Rows of the outbox with their marks, in the order of their ids.
    ///
    /// - Parameters:
    ///   - value: converts a row, its mark and the time since its first mark; returns nil to leave the row out.
    package func waiting<Value: Sendable>(
        _ ids: [Int64], columns: [Column], _ value: (Row, _ mark: (mark: DeliveryMark, age: Duration)?) throws -> Value?
    ) throws(StoreError) -> [Value] {
        let select = Statement(
            """
            SELECT \(columns.map { "o." + $0.quoted }.joined(separator: ", ")), m.node, m.epoch, \
            (extract(epoch FROM clock_timestamp() - m.marked_at) * 1000)::bigint \
            FROM \(outbox.table.quoted) o LEFT JOIN cluster_mark m ON m.row_id = o.id WHERE o.id = ANY($1) ORDER BY o.id
            """, [.integers(ids)])
        return try deliveries.read([select]) { found in
            try found[0].compactMap { row in
                let mark = try row.optionalInteger(columns.count).map { owner in
                    (
                        mark: DeliveryMark(owner: NodeID(stored: owner), epoch: try row.unsigned(columns.count + 1)),
                        age: Duration.milliseconds(try row.integer(columns.count + 2))
                    )
                }
                return try value(row, mark)
            }
        }
    }

    /// The subset of these deliveries that gorush has accepted.
    package func accepted(among deliveries: [[UInt8]]) throws(StoreError) -> [[UInt8]] {
        let select = Statement(
            "SELECT \(outbox.delivery.quoted) FROM \(outbox.accepted.quoted) WHERE \(outbox.delivery.quoted) = ANY($1)",
            [.byteStrings(deliveries)])
        return try self.deliveries.read([select]) { found in try found[0].map { try $0.bytes(0) } }
    }

    /// The SQL expression for the partition of a row, the same as in the index.
    ///
    /// - Parameter alias: the alias of the table in the statement.
    func partition(of column: Column, in alias: String? = nil) -> String {
        let qualifier = alias.map { $0 + "." } ?? ""
        return "(\(qualifier)\(column.quoted) & \(configuration.partitionCount - 1)::bigint)"
    }
}
