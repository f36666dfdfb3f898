import Dispatch
import Core
import Storage
import WakuCrypto

/// Commits commands on its own connection, which it reopens when it is lost.
///
///     claim ─▶ decide, change ─▶ COMMIT ──(reply)──────────────────────────▶ committed
///       ▲            │             └─(no reply, or a warning)─▶ look up the claim ─┤
///       └─(conflict, serialization failure, deadlock)◀──────(not committed)────────┘
///
/// The claim is the random id of the batch, written to this writer's row of `store_writer` as the first change of the transaction. `COMMIT` is sent
/// only after the row was written and so locked: a later write to that row on another connection waits until the first transaction has ended, and
/// sees its outcome. That write is committed too: with synchronous replication, it is acknowledged only after all earlier commits.
final class Writer {
    private static let conflictLimit = 3
    private static let repetitionLimit = 10
    /// The advisory lock of exclusive writers, combined with the schema's id. A server may notice late that the previous holder was killed.
    private static let lockKey = 0x7761_6b75
    private static let lockArguments = "(\(lockKey), quote_ident(current_schema())::regnamespace::oid::integer)"
    private static let lockTimeout = "3s"
    private static let retryPause = ExponentialBackoff(initial: .milliseconds(200), maximum: .seconds(2))

    private let address: PostgreSQLAddress
    /// Its row in `store_writer`.
    private let name: String
    private let access: PostgreSQLStore.Access
    /// Its name in `pg_stat_activity`.
    let session = "waku-push \(randomBytes(4).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())"
    private let closing: DispatchSemaphore
    private let note: @Sendable (CommitEvent) -> Void
    private var connection: PostgreSQLConnection?
    /// The batch in its row of `store_writer`; nil before the row exists.
    private var batch: [UInt8]?
    private var isClosing = false
    private var failedAttempts = 0
    /// The time until which commands fail without another attempt to connect, and the reason.
    private var suspension: (end: ContinuousClock.Instant, reason: StoreError)?

    /// - Parameters:
    ///   - address: the address of the server.
    ///   - access: the nodes that it excludes.
    ///   - closing: signalled when the writer must not wait any longer.
    ///   - note: called with each event, in order, before the batches concerned are told.
    init(
        _ address: PostgreSQLAddress, _ access: PostgreSQLStore.Access, closing: DispatchSemaphore,
        note: @escaping @Sendable (CommitEvent) -> Void
    ) {
        self.address = address
        self.access = access
        self.closing = closing
        self.note = note
        name = access == .exclusive ? "node" : session
    }

    // MARK: Commits

    /// Commits the commands: each is complete or has failed when this returns.
    func commit(_ commands: [PendingCommand]) {
        var (commands, repetitions, isGrouping) = (commands, 0, true)
        while !commands.isEmpty {
            note(.committing)
            do {
                try attempt(commands, isGrouping: isGrouping)
                for error in commands.compactMap(\.failure) { note(.failed(StoreError(explaining: error, at: address))) }
                note(.committed(failure: nil))
                for command in commands { command.complete() }
                return
            } catch let failure as BatchTransaction.Failure {
                connection?.rollBack()
                // When other nodes write too, the rows of other commands may have changed as well: all are read again.
                for command in commands {
                    command.reset(keepingDecision: access != .shared && ObjectIdentifier(command) != failure.command)
                }
                guard let index = commands.firstIndex(where: { ObjectIdentifier($0) == failure.command }) else { continue }
                if mustFail(commands[index], failure) {
                    note(.failed(StoreError(explaining: failure.error ?? failure, at: address)))
                    commands.remove(at: index).fail(failure.error ?? failure)
                }
            } catch is StatementGroups.Refused {
                connection?.rollBack()
                for command in commands { command.reset(keepingDecision: access != .shared) }
                isGrouping = false
            } catch {
                connection?.rollBack()
                for command in commands { command.reset(keepingDecision: false) }
                repetitions += 1
                guard repetitions < limit(error) else {
                    // Another server may succeed.
                    connection = nil
                    let explained = StoreError(explaining: error, at: address)
                    note(.committed(failure: explained))
                    for command in commands { command.fail(explained) }
                    return
                }
            }
        }
        // Failed commands do not count: their failures are their own.
        note(.committed(failure: nil))
    }

    private func mustFail(_ command: PendingCommand, _ failure: BatchTransaction.Failure) -> Bool {
        guard failure.error == nil else { return true }
        command.conflictCount += 1
        return command.conflictCount >= Self.conflictLimit
    }

    /// The number of attempts after this error.
    private func limit(_ error: any Error) -> Int {
        switch error {
        // An idle connection may have been lost unnoticed.
        case PostgreSQLError.connectionLost: 2
        case PostgreSQLError.refused(let state, _) where state.isRepeatable: Self.repetitionLimit
        case is NotCommitted: Self.repetitionLimit
        default: 0
        }
    }

    private func attempt(_ commands: [PendingCommand], isGrouping: Bool) throws {
        try begin()
        let connection = try connected()
        let claim = randomBytes(16)
        let write = Statement(
            "UPDATE store_writer SET batch = $3, changed_at = now() WHERE name = $1 AND batch = $2",
            [.text(name), .bytes(batch ?? []), .bytes(claim)])
        var transaction = BatchTransaction(
            connection, beginning: [Statement("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"), write], isGrouping: isGrouping)
        do {
            try transaction.run(commands)
        } catch is Superseded {
            throw StoreError(code: .locked, message: supersededMessage)
        }
        try commit(on: connection, claim)
    }

    /// The transaction was not committed: by the answer to `COMMIT`, or by a lookup when there was no answer.
    private struct NotCommitted: Error {}

    private func commit(on connection: PostgreSQLConnection, _ claim: [UInt8]) throws {
        let warningCount = connection.warningCount
        do {
            let result = try connection.run(Statement("COMMIT"))
            guard result.tag == "COMMIT" else { throw NotCommitted() }
            if connection.warningCount == warningCount {
                batch = claim
                return
            }
        } catch PostgreSQLError.connectionLost {}
        // The reply was lost, or the wait for replication was cancelled.
        self.connection = nil
        guard try isCommitted(claim) else { throw NotCommitted() }
        batch = claim
    }

    /// Whether the claim was committed. Waits until a server can answer.
    private func isCommitted(_ claim: [UInt8]) throws -> Bool {
        var failures = 0
        while true {
            do {
                return try lookUp(claim)
            } catch is Superseded {
                throw StoreError(code: .locked, message: supersededMessage)
            } catch {
                let reason = StoreError(explaining: error, at: address)
                guard !isClosing else {
                    throw StoreError(code: reason.code, message: "whether the last changes were kept is not known: \(reason.message)")
                }
                note(.committed(failure: reason))
                note(.committing)
                failures += 1
                pause(Self.retryPause.delay(afterFailures: failures, jitter: .random(in: 0...1)))
            }
        }
    }

    private func lookUp(_ claim: [UInt8]) throws -> Bool {
        suspension = nil
        let connection = try connected()
        let touch = Statement("UPDATE store_writer SET changed_at = now() WHERE name = $1 RETURNING batch", [.text(name)])
        var warningCount = 0
        let found = try connection.transaction { connection in
            let found = try connection.run(touch).rows.first?.bytes(0)
            warningCount = connection.warningCount
            return found
        }
        guard connection.warningCount == warningCount else {
            self.connection = nil
            throw StoreError(unreplicatedAt: address)
        }
        guard found == claim || found == batch else { throw Superseded() }
        return found == claim
    }

    private var supersededMessage: String {
        "PostgreSQL (\(address)) was taken over by another waku-push, or restored from a backup, or a standby was promoted that lacks this node's "
            + "last commits: stop the other waku-push, if there is one, then restart this one"
    }

    private func pause(_ duration: Duration) {
        let milliseconds = Int(duration / .milliseconds(1))
        if !isClosing, closing.wait(timeout: .now() + .milliseconds(milliseconds)) == .success { isClosing = true }
    }

    // MARK: The connection

    func connected() throws(StoreError) -> PostgreSQLConnection {
        if let connection, !connection.isLost { return connection }
        connection = nil
        if let suspension, suspension.end > .now { throw suspension.reason }
        do {
            let made = try PostgreSQLConnection.open(address, name: session)
            try prepare(made)
            (connection, suspension, failedAttempts) = (made, nil, 0)
            return made
        } catch {
            let reason = StoreError(explaining: error, at: address)
            failedAttempts += 1
            suspension = (.now + Self.retryPause.delay(afterFailures: failedAttempts, jitter: 1), reason)
            throw reason
        }
    }

    private func prepare(_ connection: PostgreSQLConnection) throws {
        // A server may notice late that a connection is gone, and keeps its locks until then.
        let end = Statement(
            "SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE application_name = $1 AND pid <> pg_backend_pid()",
            [.text(session)], isPrepared: false)
        _ = try connection.run(end)
        // Limits how long a node that is suspended within a transaction can block other nodes at its locked rows.
        if access == .shared { _ = try connection.run(Statement("SET idle_in_transaction_session_timeout = '3s'", isPrepared: false)) }
        try Self.lock(connection, at: address, access)
    }

    /// Excludes other nodes until the connection ends.
    ///
    /// - Throws: `StoreError` with `locked`, and errors of the database.
    static func lock(_ connection: PostgreSQLConnection, at address: PostgreSQLAddress, _ access: PostgreSQLStore.Access) throws {
        let function: String
        switch access {
        case .beside: return
        case .shared: function = "pg_advisory_lock_shared"
        case .exclusive: function = "pg_advisory_lock"
        }
        let lock = ["SET lock_timeout = '\(lockTimeout)'", "SELECT \(function)\(lockArguments)", "SET lock_timeout = 0"]
        do {
            _ = try connection.run(lock.map { Statement($0, isPrepared: false) })
        } catch {
            guard error.state?.isLockTimeout == true else { throw error }
            throw locked(address, access)
        }
    }

    /// Whether ``lock(_:at:_:)`` would succeed now. Neither waits nor keeps the lock.
    ///
    /// - Throws: as ``lock(_:at:_:)``.
    static func checkLock(_ connection: PostgreSQLConnection, at address: PostgreSQLAddress, isShared: Bool) throws {
        // Outside a transaction the lock ends with the statement.
        let function = isShared ? "pg_try_advisory_xact_lock_shared" : "pg_try_advisory_xact_lock"
        let rows = try connection.run(Statement("SELECT \(function)\(lockArguments)::integer::bigint", isPrepared: false)).rows
        guard try rows.first?.integer(0) == 1 else { throw locked(address, isShared ? .shared : .exclusive) }
    }

    private static func locked(_ address: PostgreSQLAddress, _ access: PostgreSQLStore.Access) -> StoreError {
        StoreError(code: .locked, message: "PostgreSQL (\(address)) is in use by \(access.others)")
    }

    /// Creates the row of `store_writer`, once the table exists. A previous owner of the row can't commit any more.
    func begin() throws(StoreError) {
        guard batch == nil else { return }
        let connection = try connected()
        let first = randomBytes(16)
        do {
            let insert = Statement(
                "INSERT INTO store_writer (name, batch) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET batch = excluded.batch",
                [.text(name), .bytes(first)])
            // Deletes the rows of killed commands; with exclusive access, also those of commands still running, such as an import: they can't commit
            // any more. Beside other nodes, rows are kept for longer than a node may be cut off from the database, since it needs its own afterwards.
            let age = access == .exclusive ? "" : " AND changed_at < now() - interval '30 days'"
            let prune = Statement("DELETE FROM store_writer WHERE name <> 'node'" + age)
            _ = try connection.run([prune, insert])
        } catch {
            throw StoreError(explainingCommit: error, on: connection)
        }
        batch = first
    }

    /// Checks whether commits succeed at present, by updating this writer's row; before the row exists, only whether the server answers.
    ///
    /// - Throws: `StoreError`
    func probe() throws(StoreError) {
        note(.committing)
        do {
            do {
                try touch()
            } catch PostgreSQLError.connectionLost {
                // The connection may have been lost while it was idle: whether the server can be reached shows in the next one.
                try touch()
            }
            note(.committed(failure: nil))
        } catch {
            let explained = StoreError(explaining: error, at: address)
            note(.committed(failure: explained))
            throw explained
        }
    }

    private func touch() throws {
        let connection = try connected()
        guard let batch else { return _ = try connection.run(Statement("SELECT")) }
        let touch = Statement(
            "UPDATE store_writer SET changed_at = now() WHERE name = $1 AND batch = $2", [.text(name), .bytes(batch)])
        // Plans of prepared statements are those for the tables' sizes at that time, and tables may have grown since.
        let replan = Statement("DISCARD PLANS", isPrepared: false)
        if try connection.run([replan, touch])[1].changedCount == 0 { throw StoreError(code: .locked, message: supersededMessage) }
    }

    /// Whether a table of 128 KB finds space. It is rolled back. The tables of the nodes may have free pages, so that changes to them show nothing.
    ///
    /// - Throws: `StoreError` when the server can't be asked.
    func hasSpace() throws(StoreError) -> Bool {
        let connection = try connected()
        defer { connection.rollBack() }
        let create = "CREATE TABLE \"\(session) space\" AS SELECT repeat('x', 1000) FROM generate_series(1, 128)"
        do {
            _ = try connection.run(["BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", create].map { Statement($0, isPrepared: false) })
            return true
        } catch .refused(let state, _) where state.isFull {
            return false
        } catch .refused(let state, _) where state.isPermission {
            // The role may make no tables: nothing is known.
            return true
        } catch {
            throw StoreError(explaining: error, at: address)
        }
    }

    func close() {
        isClosing = true
        if access != .exclusive, batch != nil, let connection, !connection.isLost {
            _ = try? connection.run(Statement("DELETE FROM store_writer WHERE name = $1", [.text(name)]))
        }
        connection = nil
    }
}

extension PostgreSQLStore.Access {
    /// The programs that may hold the lock, and the remedy.
    fileprivate var others: String {
        switch self {
        case .exclusive, .beside:
            "another waku-push: stop that one, or all nodes of a cluster, or give another database; to share this one, give --cluster to all "
                + "nodes, and admin registrations import the --data of a running node"
        case .shared: "a waku-push without --cluster: stop that one, or give another database"
        }
    }
}
