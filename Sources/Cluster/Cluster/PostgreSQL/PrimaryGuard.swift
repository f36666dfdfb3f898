import Storage
import StorePostgreSQL
import Synchronization

/// The check of the primary that all connections of a node share: see `Cluster/PrimaryCheck`.
final class PrimaryGuard: Sendable {
    private let check = Mutex(PrimaryCheck())

    /// Checks the server of a new connection, before any other use. `PostgreSQLConnection.open` has already checked that the server is not a standby,
    /// and that it syncs commits.
    func accept(_ connection: PostgreSQLConnection) throws(StoreError) {
        guard let identifier = connection.systemIdentifier else {
            throw StoreError(
                code: .permission,
                message: "this role may not read which PostgreSQL cluster (\(connection.address)) this is: "
                    + "GRANT EXECUTE ON FUNCTION pg_control_system() to it")
        }
        let refusal = check.withLock { $0.check(systemIdentifier: identifier, timeline: connection.timeline) }
        guard let refusal else { return }
        throw StoreError(code: .unavailable, message: "PostgreSQL (\(connection.address)) can't be used: \(refusal)")
    }
}

extension SQLState {
    var isUndefinedTable: Bool { description == "42P01" }
}
