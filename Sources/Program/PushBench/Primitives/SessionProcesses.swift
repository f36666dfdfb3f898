import Storage
import StorePostgreSQL
import Synchronization

/// The processes of a PostgreSQL server that serve this program's sessions in a database.
final class SessionProcesses: Sendable {
    private static let select = Statement(
        "SELECT pid::bigint FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'waku-push%'")

    private let session: Mutex<PostgreSQLConnection>

    /// Blocks.
    ///
    /// - Throws: `StoreError`
    init(at address: PostgreSQLAddress) throws {
        session = Mutex(try PostgreSQLConnection.open(address, name: "waku-push bench"))
    }

    /// CPU time so far, in nanoseconds; nil when the processes are not on this machine. Comparable only while the sessions are the same.
    /// Blocks.
    ///
    /// - Throws: `PostgreSQLError`
    func time() throws -> UInt64? {
        try session.withLock { session in
            let rows = try session.run(Self.select).rows
            let processes = try rows.compactMap { ServerProcess(Int32(try $0.integer(0)), of: session) }
            return processes.count == rows.count ? processes.reduce(0) { $0 + $1.time } : nil
        }
    }
}
