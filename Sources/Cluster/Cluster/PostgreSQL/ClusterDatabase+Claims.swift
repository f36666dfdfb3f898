import Storage
import StorePostgreSQL

extension ClusterDatabase {
    /// The state of the claim partitions. Reading it locks the row of `cluster` until the end of the transaction.
    private struct State {
        /// The first hour that is kept, as stored.
        let firstHour: ClaimWindow.Hour
        /// Hours that have a partition.
        let hours: Set<ClaimWindow.Hour>
        /// The partitions to create and to drop now.
        let plan: (create: ClosedRange<ClaimWindow.Hour>, dropBefore: ClaimWindow.Hour)
    }

    /// Creates missing partitions, in the connection's transaction. No partition before the first hour is created, so a dropped one does not return.
    func createClaimPartitions(_ connection: PostgreSQLConnection) throws {
        let state = try lockClaims(connection)
        _ = try connection.run(state.plan.create.filter { !state.hours.contains($0) }.flatMap(ClaimPartition.creation))
    }

    /// Drops old partitions and stores the first hour that is kept, in the connection's transaction.
    func dropClaimPartitions(_ connection: PostgreSQLConnection) throws {
        let state = try lockClaims(connection)
        guard state.plan.dropBefore > state.firstHour || state.hours.contains(where: { $0 < state.firstHour }) else { return }
        let store = Statement("UPDATE cluster SET first_hour = $1", [.integer(state.plan.dropBefore)])
        _ = try connection.run([store] + state.hours.filter { $0 < state.plan.dropBefore }.sorted().map(ClaimPartition.drop))
    }

    private func lockClaims(_ connection: PostgreSQLConnection) throws -> State {
        let found = try connection.run([
            Statement("SELECT first_hour FROM cluster FOR UPDATE"), Self.clock, ClaimPartition.names,
        ])
        guard let first = found[0].rows.first, let now = found[1].rows.first else { throw UnexpectedValue() }
        var window = ClaimWindow(firstHour: try first.integer(0))
        return State(
            firstHour: window.firstHour, hours: Set(try found[2].rows.compactMap { ClaimPartition.hour(of: try $0.text(0)) }),
            plan: window.maintain(now: try now.integer(0)))
    }
}

/// A partition of the table of claims, with the claims of an hour.
enum ClaimPartition {
    private static let prefix = "claim_"
    static let names = Statement(
        "SELECT relname::text FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'claim'::regclass")

    static func hour(of name: String) -> ClaimWindow.Hour? {
        name.hasPrefix(prefix) ? ClaimWindow.Hour(name.dropFirst(prefix.count)) : nil
    }

    /// Attaches a new table, because `CREATE TABLE … PARTITION OF` would block inserts of claims.
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
