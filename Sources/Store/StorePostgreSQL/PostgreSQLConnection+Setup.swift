package import Storage

extension PostgreSQLConnection {
    private static let minimumVersion: Int32 = 15_00_00

    /// Opens and configures a session with a server that commits durably: the first of the address's hosts that can be used. The host that was used
    /// last is tried first. Each host, and each IP address of a host name, has its own time limit. A former primary is passed over: the first connection
    /// of a process, which knows of none, looks at all hosts, and is the one with the newest timeline.
    ///
    /// - Parameters:
    ///   - name: the name of the session in `pg_stat_activity`.
    ///   - accept: throws if this host can't be used.
    /// - Throws: the errors of all hosts as one `StoreError`.
    package static func open(
        _ address: PostgreSQLAddress, name: String, accept: (PostgreSQLConnection) throws(StoreError) -> Void = { _ in }
    ) throws(StoreError) -> PostgreSQLConnection {
        try address.requireAccepted()
        let parameters = try PostgreSQLAddress.library().completed(parameters(of: address))
        let hosts = try PostgreSQLHost.list(parameters)
        let known = KnownPrimary.of(address.connectionString)
        let last = known.host
        var failures: [StoreError] = []
        var newest: (host: PostgreSQLHost, connection: PostgreSQLConnection)?
        for named in hosts.beginning(with: last) {
            do {
                let places = try named.resolved(in: address)
                let isOnly = hosts.isOnly(resolvedTo: places)
                let limit = PostgreSQLHost.connectLimit(parameters["connect_timeout"], isOnly: isOnly)
                for host in places.beginning(with: last) {
                    do {
                        let connection = try PostgreSQLConnection(to: address.at(host), within: limit)
                        // A server may also stop responding once it has accepted the connection.
                        if !isOnly { connection.silenceLimit = min(limit, address.silenceLimit) }
                        try connection.configure(name)
                        try connection.requireNewest()
                        try accept(connection)
                        connection.silenceLimit = address.silenceLimit
                        if newest.map({ connection.hasReplaced($0.connection) }) ?? true { newest = (host, connection) }
                        break
                    } catch {
                        failures.append(error)
                    }
                }
            } catch {
                failures.append(error)
            }
            if last != nil, newest != nil { break }
        }
        guard let newest else { throw StoreError(ofHosts: failures) }
        known.note(newest.host, newest.connection)
        return newest.connection
    }

    /// Whether this server was promoted in place of the other one.
    private func hasReplaced(_ other: PostgreSQLConnection) -> Bool {
        systemIdentifier != nil && systemIdentifier == other.systemIdentifier && timeline > other.timeline
    }

    /// A session with one of several hosts, for a short use.
    ///
    /// - Throws: as ``open(_:name:accept:)``
    static func configured(_ address: PostgreSQLAddress, at host: PostgreSQLHost, name: String) throws(StoreError) -> PostgreSQLConnection {
        let limit = PostgreSQLHost.connectLimit(address.parameters["connect_timeout"], isOnly: false)
        let connection = try PostgreSQLConnection(to: address.at(host), within: limit)
        connection.silenceLimit = min(limit, address.silenceLimit)
        try connection.configure(name)
        return connection
    }

    /// - Throws: `StoreError` if the server is a standby, or does not commit durably.
    private func configure(_ name: String) throws(StoreError) {
        guard serverVersion >= Self.minimumVersion else {
            throw refusal("it is version \(serverVersion / 1_00_00): run version 15 or later")
        }
        let facts: SessionFacts?
        do {
            facts = try run(settings(name) + [SessionFacts.query]).last?.rows.first.flatMap { try? SessionFacts($0) }
        } catch PostgreSQLError.refused(let state, _) where ["26000", "08P01"].contains(state.description) {
            throw refusal(Self.poolerMessage)
        } catch {
            throw StoreError(explaining: error, at: address)
        }
        guard let facts else { throw refusal("it does not answer as PostgreSQL does") }
        try check(facts)
        timeline = UInt32(facts.timeline, radix: 16) ?? 0
        do {
            // In an exchange of its own, since an error would undo the settings.
            systemIdentifier = try run(Self.identifier).rows.first?.unsigned(0)
        } catch PostgreSQLError.refused(let state, _) where state.isPermission {
            // Needed only by several nodes, and to find a promoted standby.
        } catch {
            throw StoreError(explaining: error, at: address)
        }
    }

    private static let identifier = Statement("SELECT system_identifier FROM pg_control_system()", isPrepared: false)

    private func refusal(_ message: String) -> StoreError {
        StoreError(code: .unsuitable, message: "PostgreSQL (\(address)) can't be used: \(message)")
    }

    /// Begins with the time limit of statements, since that of a role could be too short for the others.
    func settings(_ name: String) -> [Statement] {
        var first = [
            Statement("SET statement_timeout = 0", isPrepared: false),
            Statement("SELECT set_config('application_name', $1, false)", [.text(name)], isPrepared: false),
        ]
        if let schema = address.schema {
            first.append(Statement("SELECT set_config('search_path', quote_ident($1), false)", [.text(schema)], isPrepared: false))
        }
        // Version 17 has it.
        first.append(
            Statement("SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout'", isPrepared: false))
        // The node applies its own time limits; a role's settings are meant for other programs. Without warnings, a commit whose wait for a
        // standby was cancelled would count as replicated.
        let set = [
            "lock_timeout = 0", "idle_in_transaction_session_timeout = 0", "idle_session_timeout = 0",
            "jit = off", "client_min_messages = warning", "quote_all_identifiers = off", "standard_conforming_strings = on",
            "default_transaction_isolation = 'read committed'",
        ]
        return first + (set + Self.keepalives).map { Statement("SET " + $0, isPrepared: false) }
    }

    /// Like this side's, so that a server ends the session of a node whose machine has lost its power or network within some 10 s, and not after its
    /// default of two hours: the session holds the lock that excludes other nodes. Without effect on Unix sockets.
    private static let keepalives = [
        "tcp_keepalives_idle = 5", "tcp_keepalives_interval = 2", "tcp_keepalives_count = 2", "tcp_user_timeout = 10000",
    ]

    /// The facts that a new session reads of itself and its server.
    private struct SessionFacts {
        static let query = Statement(
            """
            SELECT pg_backend_pid()::bigint, pg_is_in_recovery()::integer::bigint, \
            set_config('synchronous_commit', current_setting('synchronous_commit'), false), \
            current_setting('fsync'), current_setting('server_encoding'), coalesce(current_schema()::text, ''), \
            CASE WHEN pg_is_in_recovery() THEN '' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END
            """, isPrepared: false)

        let backendID: Int64
        let isStandby: Bool
        let synchronousCommit: String
        let fsync: String
        let encoding: String
        /// Empty if none of `search_path` exists.
        let schema: String
        /// In hexadecimal digits; empty at a standby.
        let timeline: String

        init(_ row: Row) throws {
            guard row.values.count == 7 else { throw UnexpectedValue() }
            (backendID, isStandby) = (try row.integer(0), try row.integer(1) != 0)
            (synchronousCommit, fsync, encoding) = (try row.text(2), try row.text(3), try row.text(4))
            (schema, timeline) = (try row.text(5), try row.text(6))
        }
    }

    private func check(_ facts: SessionFacts) throws(StoreError) {
        guard facts.backendID == Int64(backendID) else { throw refusal(Self.poolerMessage) }
        guard !facts.isStandby else {
            // A later attempt may succeed: the standby may be promoted.
            throw StoreError(code: .unavailable, message: "PostgreSQL (\(address)) is a standby: give the primary")
        }
        guard ["on", "remote_apply"].contains(facts.synchronousCommit) else {
            throw refusal("synchronous_commit is less than on, so that what was acknowledged may be lost: set it to on for this role")
        }
        guard facts.fsync == "on" else { throw refusal("fsync is off, so that what was acknowledged may be lost: set it to on") }
        guard facts.encoding == "UTF8" else { throw refusal("its encoding is not UTF8: create the database with ENCODING 'UTF8'") }
        guard !facts.schema.isEmpty else {
            if hasForbiddenSchema { throw StoreError(forbiddenAt: address) }
            throw refusal("no schema of search_path exists: create one, or correct search_path")
        }
    }

    /// Refuses a former primary, which may still run.
    private func requireNewest() throws(StoreError) {
        guard isNewest else { throw StoreError(formerPrimaryAt: address) }
    }

    /// Whether a schema of `search_path` exists: PostgreSQL passes over those that the role may not use, as if they were missing.
    private var hasForbiddenSchema: Bool {
        let find = Statement(
            """
            SELECT count(*) FROM pg_namespace WHERE nspname = ANY (string_to_array(replace(translate(current_setting('search_path'), '" ', ''), \
            '$user', current_user), ','))
            """, isPrepared: false)
        return (try? run(find).rows.first?.integer(0)) ?? 0 > 0
    }

    /// A pooler may run each transaction in another session, which lacks the prepared statements and locks.
    private static let poolerMessage = "there is a connection pooler in between: give the address of the server itself"

    /// Runs `body` in a transaction.
    ///
    /// - Throws: ``PostgreSQLError`` and errors of `body`, after rolling back.
    package func transaction<Result>(_ begin: String = "BEGIN", _ body: (PostgreSQLConnection) throws -> Result) throws -> Result {
        _ = try run(Statement(begin))
        do {
            let result = try body(self)
            _ = try run(Statement("COMMIT"))
            return result
        } catch {
            rollBack()
            throw error
        }
    }

    /// Ends the transaction. Errors are ignored; they show in the next statement.
    package func rollBack() {
        if discardPreceding().isEmpty, !isLost { _ = try? run(Statement("ROLLBACK")) }
    }

    /// The rows of a read.
    func rows(_ read: Read) throws -> [Row] {
        try run(try read.statement()).rows
    }

    /// Executes a command that is alone in the current transaction.
    func perform<Outcome>(_ command: StoreCommand<Outcome>) throws -> Outcome {
        var steps = CommandSteps(command)
        while true {
            switch steps.state {
            case .reading(let statements): steps.take(try run(statements)[...])
            case .decided(let changes, let outcome):
                return outcome(try run(try changes.map { try $0.statement() }).compactMap { try $0.rows.first?.integer(0) })
            case .failed(let error): throw error
            }
        }
    }
}
