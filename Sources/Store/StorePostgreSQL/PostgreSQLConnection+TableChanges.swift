import Storage

extension PostgreSQLConnection {
    /// How long a change of a table waits for locks of other sessions: longer than `deadlock_timeout`, after which an autovacuum gives way, and shorter
    /// than nodes can do without the tables.
    private static let lockLimit = "1500ms"

    /// Runs `body`, which changes tables in the current transaction. It does not wait for sessions that use them for long, such as a `pg_dump`, since
    /// everything that uses the tables later waits behind it.
    ///
    /// - Throws: `StoreError` with `locked`, after a rollback, if a session does not give way; and errors of `body`.
    package func changingTables<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            _ = try run(Statement("SET LOCAL lock_timeout = '\(Self.lockLimit)'", isPrepared: false))
            let result = try body()
            _ = try run(Statement("SET LOCAL lock_timeout = 0", isPrepared: false))
            return result
        } catch PostgreSQLError.refused(let state, _) where state.isLockTimeout {
            rollBack()
            let session = lockHolder.map { ": " + $0 } ?? ""
            throw StoreError(
                code: .locked,
                message: "the tables in PostgreSQL (\(address)) can't be changed while another session uses them\(session). "
                    + "Wait for its end, or end it by pg_terminate_backend")
        }
    }

    /// The session that has used tables of this schema for the longest time. The beginnings of other roles' transactions are hidden from most roles.
    private var lockHolder: String? {
        let find = Statement(
            """
            SELECT concat_ws(', ', 'process ' || a.pid, nullif(a.application_name, ''), 'role ' || a.usename) \
            FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_stat_activity a ON a.pid = l.pid \
            WHERE l.granted AND l.database = a.datid AND a.datname = current_database() AND a.pid <> pg_backend_pid() \
            AND c.relnamespace = quote_ident(current_schema())::regnamespace ORDER BY a.xact_start NULLS FIRST LIMIT 1
            """, isPrepared: false)
        return try? run(find).rows.first?.text(0)
    }
}
