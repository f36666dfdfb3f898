import Cluster
import Storage
import StorePostgreSQL

extension ClusterDatabase {
    /// What the database has of claims, its row of `cluster` locked until the end of the transaction.
    private struct State {
        /// As it is stored.
        let firstHour: ClaimWindow.Hour
        /// Hours that have a partition.
        let hours: Set<ClaimWindow.Hour>
        /// What is to be done now.
        let plan: (create: ClosedRange<ClaimWindow.Hour>, dropBefore: ClaimWindow.Hour)
    }

    /// In a transaction. Only hours from the first one on are created: one that was dropped does not come back.
    func createClaimPartitions(_ connection: PostgreSQLConnection) throws {
        let state = try lockClaims(connection)
        _ = try connection.run(state.plan.create.filter { !state.hours.contains($0) }.flatMap(ClaimPartition.creation))
    }

    /// In a transaction: drops the old ones, and stores the first hour that is kept.
    func dropClaimPartitions(_ connection: PostgreSQLConnection) throws {
        let state = try lockClaims(connection)
        guard state.plan.dropBefore > state.firstHour || state.hours.contains(where: { $0 < state.firstHour }) else { return }
        let store = Statement("UPDATE cluster SET first_hour = $1", [.integer(state.plan.dropBefore)])
        _ = try connection.run([store] + state.hours.filter { $0 < state.plan.dropBefore }.sorted().map(ClaimPartition.drop))
    }

    private func lockClaims(_ connection: PostgreSQLConnection) throws -> State {
        let found = try connection.run([
            Statement("SELECT first_hour FROM cluster FOR UPDATE"), Self.clock,
            Statement("SELECT relname::text FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'claim'::regclass"),
        ])
        guard let first = found[0].rows.first, let now = found[1].rows.first else { throw UnexpectedValue() }
        var window = ClaimWindow(firstHour: try first.integer(0))
        return State(
            firstHour: window.firstHour, hours: Set(try found[2].rows.compactMap { ClaimPartition.hour(of: try $0.text(0)) }),
            plan: window.maintain(now: try now.integer(0)))
    }
}

/// A table with the claims of an hour.
private enum ClaimPartition {
    private static let prefix = "claim_"

    static func hour(of name: String) -> ClaimWindow.Hour? {
        name.hasPrefix(prefix) ? ClaimWindow.Hour(name.dropFirst(prefix.count)) : nil
    }

    /// A table that is attached does not lock out those that insert claims, as one that is created in its place would.
    static func creation(of hour: ClaimWindow.Hour) -> [Statement] {
        [
            Statement("CREATE TABLE \(quoted(hour)) (LIKE claim INCLUDING DEFAULTS INCLUDING INDEXES)", isPrepared: false),
            Statement("ALTER TABLE claim ATTACH PARTITION \(quoted(hour)) FOR VALUES IN (\(hour))", isPrepared: false),
        ]
    }

    static func drop(_ hour: ClaimWindow.Hour) -> Statement {
        Statement("DROP TABLE \(quoted(hour))", isPrepared: false)
    }

    private static func quoted(_ hour: ClaimWindow.Hour) -> String { "\"\(prefix)\(hour)\"" }
}
