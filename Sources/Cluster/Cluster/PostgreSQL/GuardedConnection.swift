import Storage
import StorePostgreSQL
import Synchronization

/// A connection for one purpose, opened on first use and reopened after a loss. Threads use it one at a time.
final class GuardedConnection: Sendable {
    private static let attemptLimit = 3
    /// The maximum time that a process which is suspended in a transaction can keep rows locked.
    private static let idleLimit = Duration.seconds(2)

    private let address: PostgreSQLAddress
    private let name: String
    private let primary: PrimaryGuard
    private let timeLimit: Duration?
    private let isClosed = Atomic(false)
    private let lock = Mutex(())
    /// Accessed only while holding the lock.
    private nonisolated(unsafe) var connection: PostgreSQLConnection?

    /// - Parameters:
    ///   - purpose: shown in `pg_stat_activity`.
    ///   - primary: decides whether a connection may be used.
    ///   - timeLimit: the time after which a transaction is not begun, a read or transaction is not repeated, and the maximum silence of the server.
    ///     Connecting may take longer. nil applies only the silence limit of the address.
    init(_ address: PostgreSQLAddress, for purpose: String, _ primary: PrimaryGuard, timeLimit: Duration? = nil) {
        var address = address
        if let timeLimit { address.silenceLimit = min(address.silenceLimit, timeLimit) }
        self.address = address
        name = "waku-push \(purpose)"
        self.primary = primary
        self.timeLimit = timeLimit
    }

    // MARK: Statements

    /// Runs read-only statements in one round trip, and converts their rows.
    func read<Result: Sendable>(
        _ statements: [Statement], _ result: ([[Row]]) throws -> Result
    ) throws(StoreError) -> Result {
        try use(isRead: true) { connection in try result(connection.run(statements).map(\.rows)) }
    }

    /// Runs a transaction. It is repeated only if nothing can have been committed: after a deadlock or serialization failure, or on a new connection
    /// if the old one was lost before the commit.
    ///
    /// - Parameters:
    ///   - lockLimit: how long a statement waits for a lock of another transaction; zero sets no limit.
    ///   - body: runs the statements; may be called again.
    /// - Throws: `StoreError`; also if it is not known whether the transaction was committed.
    func transaction<Result: Sendable>(
        lockLimit: Duration = .zero, _ body: (PostgreSQLConnection) throws -> Result
    ) throws(StoreError) -> Result {
        try use(isRead: false) { connection in
            let result: Result
            do {
                connection.precede(by: beginning(lockLimit).map { Statement($0) })
                result = try body(connection)
            } catch {
                connection.rollBack()
                throw error
            }
            try commit(connection)
            return result
        }
    }

    /// Closes the connection after its current use. It is not opened again.
    func close() {
        isClosed.store(true, ordering: .sequentiallyConsistent)
        lock.withLock { _ in connection = nil }
    }

    // MARK: -

    private func use<Result: Sendable>(
        isRead: Bool, _ body: (PostgreSQLConnection) throws -> Result
    ) throws(StoreError) -> Result {
        let deadline = timeLimit.map { ContinuousClock.now + $0 }
        func isTooLate() -> Bool { deadline.map { $0 <= .now } ?? false }
        do {
            return try lock.withLock { _ in
                var attempt = 1
                while true {
                    let connection = try connected()
                    // Connecting takes long when several hosts do not answer: a read is as good then, and a node joins by reads.
                    guard isRead || !isTooLate() else { throw overdue }
                    do {
                        return try body(connection)
                    } catch let error as PostgreSQLError where error.isRepeatable && attempt < Self.attemptLimit && !isTooLate() {
                        attempt += 1
                    }
                }
            }
        } catch PostgreSQLError.refused(let state, _) where state.isUndefinedTable {
            throw StoreError(
                code: .missing, message: "PostgreSQL (\(address)) is not shared by several nodes: has one been started with --cluster?")
        } catch {
            throw StoreError(explaining: error, at: address)
        }
    }

    private func connected() throws(StoreError) -> PostgreSQLConnection {
        guard !isClosed.load(ordering: .sequentiallyConsistent) else {
            throw StoreError(code: .unavailable, message: "the connection to PostgreSQL (\(address)) was closed")
        }
        if let connection, !connection.isLost { return connection }
        connection = nil
        let made = try PostgreSQLConnection.open(address, name: name, accept: primary.accept)
        connection = made
        return made
    }

    private func beginning(_ lockLimit: Duration) -> [String] {
        // Shorter than the client's silence limit, so that the server reports its own timeout first, except that of a commit's wait for a standby.
        let statementLimit = timeLimit.map { $0 * 0.75 } ?? .zero
        func set(_ name: String, _ limit: Duration) -> String { "SET LOCAL \(name) = \(Int64(limit / .milliseconds(1)))" }
        return [
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", set("statement_timeout", statementLimit), set("lock_timeout", lockLimit),
            set("idle_in_transaction_session_timeout", Self.idleLimit),
        ]
    }

    private func commit(_ connection: PostgreSQLConnection) throws {
        let warningCount = connection.warningCount
        do {
            let result = try connection.run(Statement("COMMIT"))
            guard result.tag == "COMMIT" else {
                throw StoreError(code: .unavailable, message: "PostgreSQL (\(address)) gave a transaction up")
            }
        } catch PostgreSQLError.connectionLost {
            throw StoreError(
                code: .unavailable,
                message: "the connection to PostgreSQL (\(address)) was lost during a commit: whether it took place is not known")
        }
        guard connection.warningCount == warningCount else {
            self.connection = nil
            throw StoreError(unreplicatedAt: address)
        }
    }

    private var overdue: StoreError {
        StoreError(code: .unavailable, message: "PostgreSQL (\(address)) was reached too late")
    }
}

extension PostgreSQLError {
    /// Whether nothing was committed, so that the transaction may be repeated.
    fileprivate var isRepeatable: Bool {
        switch self {
        case .connectionLost: true
        case .refused(let state, _): state.isRepeatable
        }
    }
}
