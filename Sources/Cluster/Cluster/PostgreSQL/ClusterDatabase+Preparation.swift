package import Storage
package import StorePostgreSQL

extension ClusterDatabase {
    /// The key of the advisory lock, together with the schema's id, that prevents two processes from changing the tables at the same time.
    private static let lock = 0x7761_6b63

    /// Creates the tables, the claim partitions of the current hours and the triggers that do not exist yet. The outbox and the tables of the notices
    /// must exist.
    ///
    /// - Parameter notices: the triggers that notify other nodes of new rows: see ``ClusterListener``. A channel's former definition is replaced.
    /// - Throws: `StoreError` with `unsuitable` if the database has another number of partitions.
    package func prepare(notices: [Notice]) throws(StoreError) {
        precondition(configuration.partitionCount > 0 && configuration.partitionCount & (configuration.partitionCount - 1) == 0)
        try maintenance.transaction { connection in
            try connection.withoutTimeLimit {
                let lock = "SELECT pg_advisory_xact_lock(\(Self.lock), \(Self.schemaID)::integer)"
                _ = try connection.run(Statement(lock, isPrepared: false))
                try connection.changingTables {
                    _ = try connection.run(ClusterTables.statements(outbox).map { Statement($0, isPrepared: false) })
                    try addColumns(connection)
                    try createIndex(connection)
                    try createGuard(connection)
                }
                try fill(connection)
                try createClaimPartitions(connection)
                try adoptMarks(connection)
                try connection.changingTables {
                    for notice in notices { try create(notice, connection) }
                }
            }
        }
    }

    /// Moves the marks of a node that used the database alone from the outbox to `cluster_mark`, without an owner, with the time of the first mark.
    private func adoptMarks(_ connection: PostgreSQLConnection) throws {
        let (table, markedAt) = (outbox.table.quoted, outbox.markedAt.quoted)
        _ = try connection.run([
            Statement(
                """
                INSERT INTO cluster_mark (row_id, node, epoch, marked_at) SELECT id, 0, 0, to_timestamp(\(markedAt) / 1e9) FROM \(table) \
                WHERE \(markedAt) IS NOT NULL ON CONFLICT DO NOTHING
                """, isPrepared: false),
            Statement("UPDATE \(table) SET \(markedAt) = NULL WHERE \(markedAt) IS NOT NULL", isPrepared: false),
        ])
    }

    /// Prepares the database for a single node: moves the cluster's marks into the outbox, with the time of the first mark, and removes the triggers
    /// and the logged changes, since no node listens or deletes old changes. ``prepare(notices:)`` creates the triggers again.
    ///
    /// - Parameter address: the address of the database, which need not have been used by a cluster.
    package static func leaveCluster(at address: PostgreSQLAddress, outbox: Outbox) throws(StoreError) {
        let connection = try PostgreSQLConnection.open(address, name: "waku-push")
        let find = Statement(
            """
            SELECT format('DROP TRIGGER %I ON %s', tgname, tgrelid::regclass) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid \
            WHERE c.relnamespace = \(schemaID) AND starts_with(tgname::text, '\(Notice.functionPrefix)') AND NOT tgisinternal \
            UNION ALL SELECT format('DELETE FROM %s', oid::regclass) FROM pg_class \
            WHERE relname = 'cluster_change' AND relnamespace = \(schemaID)
            """, isPrepared: false)
        do {
            var statements = try connection.run(find).rows.map { try $0.text(0) }
            guard !statements.isEmpty else { return }
            statements += [
                """
                UPDATE \(outbox.table.quoted) o SET \(outbox.markedAt.quoted) = (extract(epoch FROM m.marked_at) * 1e9)::bigint \
                FROM cluster_mark m WHERE m.row_id = o.id
                """, "DELETE FROM cluster_mark",
            ]
            try connection.transaction { connection in
                _ = try connection.changingTables { try connection.run(statements.map { Statement($0, isPrepared: false) }) }
            }
        } catch {
            throw StoreError(explaining: error, at: address)
        }
    }

    static let schemaID = "quote_ident(current_schema())::regnamespace::oid"

    private func addColumns(_ connection: PostgreSQLConnection) throws {
        // Checked first: `ALTER TABLE`, even with `IF NOT EXISTS`, would wait for all transactions that use the table, such as a `pg_dump`, and the
        // heartbeats of other nodes would wait behind it.
        let find = Statement(
            "SELECT attname::text FROM pg_attribute WHERE attrelid = 'cluster_node'::regclass AND attnum > 0 AND NOT attisdropped",
            isPrepared: false)
        let found = try connection.run(find).rows.map { try $0.text(0) }
        let missing = ClusterTables.addedColumns.filter { !found.contains($0.name) }
        _ = try connection.run(
            missing.map { Statement("ALTER TABLE cluster_node ADD COLUMN \($0.name) \($0.type)", isPrepared: false) })
    }

    private func fill(_ connection: PostgreSQLConnection) throws {
        guard let now = try connection.run(Self.clock).rows.first else { throw UnexpectedValue() }
        var window = ClaimWindow(firstHour: .min)
        let insert = Statement(
            "INSERT INTO cluster (first_hour, timeline) VALUES ($1, 0) ON CONFLICT DO NOTHING",
            [.integer(window.maintain(now: try now.integer(0)).dropBefore)])
        let partitions = Statement(
            """
            INSERT INTO cluster_partition (partition, epoch) SELECT number, 0 FROM generate_series(0, $1 - 1) AS number \
            WHERE NOT EXISTS (SELECT FROM cluster_partition)
            """, [.integer(Int64(configuration.partitionRowCount))])
        let rows = try connection.run([insert, partitions, Statement("SELECT count(*) FROM cluster_partition")])[2].rows
        guard let count = rows.first else { throw UnexpectedValue() }
        try checkPartitionRows(Int(try count.integer(0)))
    }

    /// Creates the index for finding the outbox rows of a partition.
    private func createIndex(_ connection: PostgreSQLConnection) throws {
        let name = SharedObjects.partitionIndexPrefix + outbox.table.name
        // Checked first: `CREATE INDEX`, even with `IF NOT EXISTS`, would wait for all transactions that write to the table.
        let find = Statement(
            "SELECT indexname::text FROM pg_indexes WHERE schemaname = current_schema() AND indexname = $1", [.text(name)],
            isPrepared: false)
        guard try connection.run(find).rows.isEmpty else { return }
        _ = try connection.run(
            Statement("CREATE INDEX \"\(name)\" ON \(outbox.table.quoted) (\(partition(of: outbox.device)), id)", isPrepared: false))
    }

    /// Creates a trigger that prevents an accepted delivery from being enqueued again. A node may check for the delivery before another node enqueues
    /// it, and insert it after that node has posted it. The insert then fails with a unique violation, and the node decides again.
    private func createGuard(_ connection: PostgreSQLConnection) throws {
        let name = SharedObjects.guardName
        let function = Statement(
            """
            SELECT format('CREATE OR REPLACE FUNCTION \(name)() RETURNS trigger LANGUAGE plpgsql AS \
            $function$ BEGIN IF EXISTS (SELECT FROM %I.\(outbox.accepted.quoted) a WHERE a.\(outbox.delivery.quoted) = NEW.\(outbox.delivery.quoted)) \
            THEN RAISE unique_violation; END IF; RETURN NULL; END $function$', current_schema())
            """, isPrepared: false)
        guard case .text(let definition)? = try connection.run(function).rows.first?.values.first else { throw UnexpectedValue() }
        _ = try connection.run(Statement(definition, isPrepared: false))
        let find = Statement(
            "SELECT oid::bigint FROM pg_trigger WHERE tgname = $1 AND tgrelid = $2::regclass", [.text(name), .text(outbox.table.quoted)],
            isPrepared: false)
        guard try connection.run(find).rows.isEmpty else { return }
        // An AFTER trigger: the insert has then waited for a concurrent one with the same key, and the check sees its outcome.
        _ = try connection.run(
            Statement(
                "CREATE TRIGGER \(name) AFTER INSERT ON \(outbox.table.quoted) FOR EACH ROW EXECUTE FUNCTION \(name)()",
                isPrepared: false))
    }

    private func create(_ notice: Notice, _ connection: PostgreSQLConnection) throws {
        guard case .text(let function)? = try connection.run(function(of: notice)).rows.first?.values.first else { throw UnexpectedValue() }
        _ = try connection.run(Statement(function, isPrepared: false))
        // Replacing the function needs no lock on the table, but replacing the trigger does.
        let find = Statement(
            "SELECT oid::bigint FROM pg_trigger WHERE tgname = $1 AND tgrelid = $2::regclass AND tgtype = $3",
            [.text(notice.function), .text(notice.table.quoted), .integer(notice.triggerType)], isPrepared: false)
        guard try connection.run(find).rows.isEmpty else { return }
        _ = try connection.run(Statement(notice.trigger, isPrepared: false))
    }

    /// A query that returns the statement for creating the function, with the id of this schema in the channel's name.
    private func function(of notice: Notice) -> Statement {
        let log = "INSERT INTO %4$I.cluster_change (channel, payload) VALUES (%2$L, \(notice.payload)) ON CONFLICT DO NOTHING;"
        return Statement(
            """
            SELECT format('CREATE OR REPLACE FUNCTION %1$I() RETURNS trigger LANGUAGE plpgsql AS \
            $function$ BEGIN \(notice.isLogged ? log : "") PERFORM pg_notify(%3$L, \(notice.payload)); RETURN NULL; END $function$', \
            $1, $2, $2 || '_' || \(Self.schemaID), current_schema())
            """, [.text(notice.function), .text(notice.channel)], isPrepared: false)
    }
}

extension Notice {
    /// Also the trigger's name.
    fileprivate var function: String { Self.functionPrefix + channel }
    fileprivate static let functionPrefix = SharedObjects.noticePrefix

    fileprivate var payload: String {
        let value = "NEW." + column.quoted
        return column.kind == .bytes ? "encode(\(value), ''hex'')" : "\(value)::text"
    }

    /// `tgtype` of `pg_trigger`: for each row, after an insert or update.
    fileprivate var triggerType: Int64 { 1 | 4 | (includesUpdates ? 16 : 0) }

    fileprivate var trigger: String {
        "CREATE OR REPLACE TRIGGER \(function) AFTER INSERT\(includesUpdates ? " OR UPDATE" : "") ON \(table.quoted) "
            + "FOR EACH ROW EXECUTE FUNCTION \(function)()"
    }
}
