import Storage

/// The tables of a node's parts, and how older databases get them. They are in the first schema of `search_path`.
struct Schema: Sendable {
    /// Of all the program's databases: keeps two processes from changing tables at once.
    private static let lock = 0x7761_6b75

    let parts: [StorePart]

    private static let tables = [
        "CREATE TABLE IF NOT EXISTS store_migration (identifier text COLLATE \"C\" PRIMARY KEY)",
        "CREATE TABLE IF NOT EXISTS property (name text COLLATE \"C\" PRIMARY KEY, value bytea NOT NULL)",
        // The latest batch of each writer: tells whether a commit without a reply took place.
        """
        CREATE TABLE IF NOT EXISTS store_writer (
            name text COLLATE "C" PRIMARY KEY, batch bytea NOT NULL, changed_at timestamptz NOT NULL DEFAULT now()
        ) WITH (fillfactor = 50)
        """,
    ]

    private var migrations: [(identifier: String, steps: [StorePart.Step])] {
        parts.flatMap { part in part.migrations.enumerated().map { ("\(part.name) \($0 + 1)", $1) } }
    }

    /// All or nothing, in one transaction.
    ///
    /// - Throws: ``Storage/StoreError`` with `newer`, and errors of the database.
    func migrate(_ connection: PostgreSQLConnection, at address: PostgreSQLAddress) throws {
        if let applied = try applied(connection) {
            guard !isNewer(applied) else { throw StoreError(newerAt: address) }
            if isComplete(applied) { return }
        }
        try connection.transaction { connection in
            _ = try connection.run(Statement("SELECT pg_advisory_xact_lock(\(Self.lock))"))
            _ = try connection.run(Self.tables.map { Statement($0, isPrepared: false) })
            let applied = try applied(connection) ?? []
            guard !isNewer(applied) else { throw StoreError(newerAt: address) }
            for (identifier, steps) in migrations where !applied.contains(identifier) {
                var note = Statement("INSERT INTO store_migration (identifier) VALUES ($1)")
                try note.add(.text(identifier), as: .text)
                _ = try connection.run(steps.flatMap(\.sql).map { Statement($0, isPrepared: false) } + [note])
            }
        }
    }

    /// - Throws: ``Storage/StoreError`` when the tables are not as this version has them, and errors of the database.
    func require(_ connection: PostgreSQLConnection, at address: PostgreSQLAddress) throws {
        guard let applied = try applied(connection) else {
            throw StoreError(code: .missing, message: "PostgreSQL (\(address)) has no tables of waku-push: has the daemon run with it?")
        }
        guard !isNewer(applied) else { throw StoreError(newerAt: address) }
        guard isComplete(applied) else {
            throw StoreError(
                code: .damaged,
                message: "PostgreSQL (\(address)) has tables of an older version: start the daemon once to bring them up to date")
        }
    }

    /// nil when the database is not this program's.
    func applied(_ connection: PostgreSQLConnection) throws -> Set<String>? {
        let exists = try connection.run(
            Statement(
                "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'store_migration'", isPrepared: false))
        guard exists.rows.first?.values == [.integer(1)] else { return nil }
        let found = try connection.run(Statement("SELECT identifier FROM store_migration", isPrepared: false)).rows
        return Set(
            found.compactMap { row in
                if case .text(let identifier) = row.values[0] { identifier } else { nil }
            })
    }

    /// Whether a later version of this program has changed the tables of a part that this one knows. Parts that it does not know are left
    /// alone.
    func isNewer(_ applied: Set<String>) -> Bool {
        applied.subtracting(migrations.map(\.identifier)).contains { identifier in
            parts.contains { identifier.hasPrefix($0.name + " ") && Int(identifier.dropFirst($0.name.count + 1)) != nil }
        }
    }

    func isComplete(_ applied: Set<String>) -> Bool {
        applied.isSuperset(of: migrations.map(\.identifier))
    }

    /// Tables with encrypted contents.
    var sealedTables: [(table: Table, column: SealedColumn)] {
        parts.flatMap(\.tables).compactMap { table in table.sealed.map { (table, $0) } }
    }
}
