import Storage
import Synchronization

/// Read-only connections, each used by one thread at a time.
final class ConnectionPool: Sendable {
    private struct Idle: Sendable {
        /// Safe to share: while it is in the list, only the holder of the list's lock uses it; a thread that took it out is its only user until it
        /// puts it back.
        nonisolated(unsafe) let connection: PostgreSQLConnection
    }

    private struct State {
        var idle: [Idle] = []
        var isClosed = false
        /// The time until which reads fail without another attempt to connect, unless another connection is made meanwhile, and the reason.
        var suspension: (end: ContinuousClock.Instant, connectionCount: Int, reason: StoreError)?
    }

    private static let idleLimit = 5
    private static let retryPause = Duration.seconds(1)
    private static let begin = Statement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    private static let commit = Statement("COMMIT")

    let address: PostgreSQLAddress
    private let isShared: Bool
    private let lockLimit: Duration
    private let state = Mutex(State())

    /// - Parameters:
    ///   - isShared: whether other nodes use the database.
    ///   - lockLimit: how long a read waits for a session that holds a table; zero sets no limit.
    init(_ address: PostgreSQLAddress, isShared: Bool = false, lockLimit: Duration = .zero) {
        self.address = address
        self.isShared = isShared
        self.lockLimit = lockLimit
    }

    /// Runs `body` in a read-only transaction on one snapshot; repeats it if the connection turns out to have been lost while idle.
    ///
    /// - Throws: `StoreError` when there is no connection, and errors of `body`.
    func read<Result>(_ body: (PostgreSQLConnection) throws -> Result) throws -> Result {
        while true {
            let idle = idle()
            let connection = try idle ?? connect()
            defer { put(connection) }
            let (answered, began) = (connection.answeredCount, ContinuousClock.now)
            connection.precede(by: [Self.begin])
            do {
                let result = try body(connection)
                // The result no longer depends on anything that can fail.
                if connection.discardPreceding().isEmpty { try? connection.runUnawaited(Self.commit) }
                return result
            } catch PostgreSQLError.connectionLost
                where idle != nil && connection.answeredCount == answered && ContinuousClock.now - began < repetitionLimit
            {
                continue
            } catch {
                connection.rollBack()
                throw error
            }
        }
    }

    /// A read that was waited for longer, because the server answered otherwise, is not waited for again.
    private var repetitionLimit: Duration { address.silenceLimit * 2 + .seconds(10) }

    /// After a failure, does not try to connect for a while: otherwise each waiting read would wait for the full timeout.
    private func connect() throws(StoreError) -> PostgreSQLConnection {
        let count = KnownPrimary.of(address.connectionString).connectionCount
        if let suspension = state.withLock({ $0.suspension }), suspension.end > .now, suspension.connectionCount == count {
            throw suspension.reason
        }
        do {
            let connection = try PostgreSQLConnection.open(address, name: "waku-push reader")
            connection.longestSilence = address.longestSilence
            // Limits how long a node that is suspended within a read keeps old rows from being removed. An error shows in the first read.
            if isShared { _ = try? connection.run(Statement("SET idle_in_transaction_session_timeout = '60s'", isPrepared: false)) }
            if lockLimit > .zero { _ = try? connection.run(Statement(lockLimit: lockLimit)) }
            state.withLock { $0.suspension = nil }
            return connection
        } catch {
            state.withLock { $0.suspension = (.now + Self.retryPause, count, error) }
            throw error
        }
    }

    func close() {
        state.withLock { $0 = State(isClosed: true) }
    }

    private func idle() -> PostgreSQLConnection? {
        while let idle = state.withLock({ $0.idle.popLast() }) {
            if !idle.connection.isLost { return idle.connection }
        }
        return nil
    }

    private func put(_ connection: PostgreSQLConnection) {
        guard !connection.isLost else { return }
        let idle = Idle(connection: connection)
        state.withLock { state in
            if !state.isClosed, state.idle.count < Self.idleLimit { state.idle.append(idle) }
        }
    }
}

extension Statement {
    /// Limits how long the session's statements wait for another session's lock; zero sets no limit.
    init(lockLimit: Duration) {
        self.init("SET lock_timeout = \(Int64(lockLimit / .milliseconds(1)))", isPrepared: false)
    }
}
