import Storage
import StorePostgreSQL
import Synchronization

/// The check of the primary that all connections of a node share: see `Cluster/PrimaryCheck`.
final class PrimaryGuard: Sendable {
    private let check = Mutex(PrimaryCheck())

    /// Checks the server of a new connection, before any other use. `PostgreSQLConnection.open` has already checked that the server is not a standby,
    /// and that it syncs commits.
    func accept(_ connection: PostgreSQLConnection) throws(StoreError) {
        let (identifier, stored): (UInt64, UInt32)
        do {
            let found = try connection.run(Statement("SELECT system_identifier FROM pg_control_system()", isPrepared: false)).rows
            guard let row = found.first else { throw UnexpectedValue() }
            identifier = try row.unsigned(0)
            stored = try storedTimeline(connection)
        } catch {
            throw StoreError(explaining: error, at: connection.address)
        }
        let refusal = check.withLock { check in
            // Stored by a node that was connected to this timeline.
            if stored > check.timeline { _ = check.check(systemIdentifier: identifier, timeline: stored) }
            return check.check(systemIdentifier: identifier, timeline: connection.timeline)
        }
        guard let refusal else { return }
        throw StoreError(code: .unavailable, message: "PostgreSQL (\(connection.address)) can't be used: \(refusal)")
    }

    /// The stored timeline; 0 in a database that was not prepared.
    private func storedTimeline(_ connection: PostgreSQLConnection) throws -> UInt32 {
        do {
            let rows = try connection.run(Statement("SELECT timeline FROM cluster", isPrepared: false)).rows
            return UInt32(truncatingIfNeeded: try rows.first?.integer(0) ?? 0)
        } catch PostgreSQLError.refused(let state, _) where state.isUndefinedTable {
            return 0
        }
    }
}

extension SQLState {
    var isUndefinedTable: Bool { description == "42P01" }
}
