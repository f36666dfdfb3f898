import Storage

/// The tables of a node's parts and their migrations. They are in the first schema of `search_path`.
struct Schema: Sendable {
    /// The advisory lock that keeps two processes from changing tables at once, in all databases of the program.
    private static let lock = 0x7761_6b75

    let parts: [StorePart]

    private static let tables = [
        "CREATE TABLE IF NOT EXISTS store_migration (identifier text COLLATE \"C\" PRIMARY KEY)",
        // Whether releases that do not know the migration can use the tables. Migrations applied by earlier releases are known to all.
        "ALTER TABLE store_migration ADD COLUMN IF NOT EXISTS only_adds boolean NOT NULL DEFAULT false",
        "CREATE TABLE IF NOT EXISTS property (name text COLLATE \"C\" PRIMARY KEY, value bytea NOT NULL)",
        // The latest batch of each writer, to find out whether a commit without a reply took place.
        """
        CREATE TABLE IF NOT EXISTS store_writer (
            name text COLLATE "C" PRIMARY KEY, batch bytea NOT NULL, changed_at timestamptz NOT NULL DEFAULT now()
        ) WITH (fillfactor = 50)
        """,
    ]

    /// Identifiers of migrations, and whether they only add.
    typealias Applied = [String: Bool]

    private typealias Named = (identifier: String, migration: StorePart.Migration)

    private func migrations(of part: StorePart) -> [Named] {
        part.migrations.enumerated().map { ("\(part.name) \($0 + 1)", $1) }
    }

    private var migrations: [Named] { parts.flatMap(migrations) }

    /// Migrations to apply at a node's start. A migration that finishes is applied then only if its part has no tables yet, and so no rows of older
    /// releases.
    private func pending(_ applied: Applied) -> [Named] {
        parts.flatMap { part in
            let own = migrations(of: part)
            let isNew = !own.contains { applied[$0.identifier] != nil }
            return own.filter { applied[$0.identifier] == nil && (isNew || !$0.migration.finishes) }
        }
    }

    /// Migrations that finish and are not applied yet.
    private func unfinished(_ applied: Applied) -> [Named] {
        migrations.filter { applied[$0.identifier] == nil && $0.migration.finishes }
    }

    /// Applies the additive migrations in one transaction, all or none.
    ///
    /// - Throws: ``Storage/StoreError`` with `newer`, and errors of the database.
    func migrate(_ connection: PostgreSQLConnection, at address: PostgreSQLAddress) throws {
        if let applied = try applied(connection) {
            guard !isNewer(applied) else { throw StoreError(newerAt: address) }
            if pending(applied).isEmpty { return }
        }
        _ = try apply(connection, at: address, pending)
    }

    /// Applies the migrations that remove schema of older releases, which refuse the database from then on.
    ///
    /// - Returns: their identifiers.
    /// - Throws: ``Storage/StoreError`` when the tables are not as this version has them, and errors of the database.
    func finish(_ connection: PostgreSQLConnection, at address: PostgreSQLAddress) throws -> [String] {
        try require(connection, at: address)
        return try apply(connection, at: address, unfinished)
    }

    private func apply(
        _ connection: PostgreSQLConnection, at address: PostgreSQLAddress, _ select: (Applied) -> [Named]
    ) throws -> [String] {
        try connection.transaction { connection in
            _ = try connection.run(Statement("SELECT pg_advisory_xact_lock(\(Self.lock))"))
            // After the lock: another node may just have made tables in another schema.
            if let refusal = try SchemaChoice.refusal(connection, at: address) { throw refusal }
            return try connection.changingTables {
                _ = try connection.run(Self.tables.map { Statement($0, isPrepared: false) })
                let applied = try applied(connection) ?? [:]
                guard !isNewer(applied) else { throw StoreError(newerAt: address) }
                let selected = select(applied)
                for (identifier, migration) in selected {
                    let note = Statement(
                        "INSERT INTO store_migration (identifier, only_adds) VALUES ($1, $2::bigint = 1)",
                        [.text(identifier), .integer(migration.finishes ? 0 : 1)])
                    _ = try connection.run(
                        migration.steps.flatMap { $0.sql(PostgreSQL.self) }.map { Statement($0, isPrepared: false) } + [note])
                }
                return selected.map(\.identifier)
            }
        }
    }

    /// - Throws: ``Storage/StoreError`` when the tables are not as this version has them, and errors of the database.
    func require(_ connection: PostgreSQLConnection, at address: PostgreSQLAddress) throws {
        guard let applied = try applied(connection) else {
            if let refusal = try SchemaChoice.refusal(connection, at: address) { throw refusal }
            throw StoreError(code: .missing, message: "PostgreSQL (\(address)) has no tables of waku-push: has the daemon run with it?")
        }
        guard !isNewer(applied) else { throw StoreError(newerAt: address) }
        guard pending(applied).isEmpty else {
            throw StoreError(
                code: .damaged,
                message: "PostgreSQL (\(address)) has tables of an older version: start the daemon once to bring them up to date")
        }
    }

    /// The applied migrations; nil when the database is not this program's.
    func applied(_ connection: PostgreSQLConnection) throws -> Applied? {
        let exists = try connection.run(
            Statement(
                "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'store_migration'", isPrepared: false))
        guard exists.rows.first?.values == [.integer(1)] else { return nil }
        // An earlier release created the table without the second column.
        let select = "SELECT identifier, coalesce((to_jsonb(m) ->> 'only_adds')::boolean, false)::integer::bigint FROM store_migration m"
        let found = try connection.run(Statement(select, isPrepared: false)).rows
        return try found.reduce(into: [:]) { applied, row in
            if case .text(let identifier) = row.values[0] { applied[identifier] = try row.integer(1) == 1 }
        }
    }

    /// Whether a later version of this program has changed the tables of a part known to this one incompatibly. Unknown parts are ignored.
    func isNewer(_ applied: Applied) -> Bool { unknown(applied).contains { !$0.value } }

    private func unknown(_ applied: Applied) -> Applied {
        let known = Set(migrations.map(\.identifier))
        return applied.filter { identifier, _ in
            guard !known.contains(identifier) else { return false }
            return parts.contains { identifier.hasPrefix($0.name + " ") && Int(identifier.dropFirst($0.name.count + 1)) != nil }
        }
    }

    /// For operations on the complete database, such as moving the store: additions of a later version and unknown parts are refused too.
    ///
    /// - Throws: ``Storage/StoreError`` with `newer` or `unsuitable`, and errors of the database.
    func requireNothingAdded(_ connection: PostgreSQLConnection, at address: PostgreSQLAddress) throws {
        let applied = try applied(connection) ?? [:]
        guard unknown(applied).isEmpty else { throw StoreError(newerAt: address) }
        try parts.requireAll(of: applied.keys, in: "PostgreSQL (\(address))")
    }
}
