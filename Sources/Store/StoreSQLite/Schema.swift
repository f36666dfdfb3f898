import GRDB
import Storage

/// The tables of a node's parts and their migrations.
struct Schema: Sendable {
    let parts: [StorePart]

    private var migrator: DatabaseMigrator { migrator { _ in true } }

    /// - Parameter isIncluded: decides by a migration's identifier.
    func migrator(_ isIncluded: (String) -> Bool) -> DatabaseMigrator {
        var migrator = DatabaseMigrator()
        for part in parts {
            for (index, migration) in part.migrations.enumerated() where isIncluded(Self.identifier(part.name, index + 1)) {
                migrator.registerMigration(Self.identifier(part.name, index + 1)) { db in
                    for sql in migration.steps.flatMap({ $0.sql(SQLite.self) }) { try db.execute(sql: sql) }
                }
            }
        }
        return migrator
    }

    private static func identifier(_ part: String, _ number: Int) -> String { "\(part) \(number)" }

    /// - Throws: ``StoreError`` with `newer` or `unsuitable`, and errors of the database.
    func migrate(_ pool: DatabasePool, in place: String) throws {
        guard try !pool.read(isNewer) else { throw StoreError(newerIn: place) }
        // Checked before the migrations, in which a trigger could fire, and after them, since some tables may have existed already.
        let check = SchemaCheck(self)
        try pool.read { try check.verify($0, in: place) }
        if try pool.read(isComplete) { return }
        try pool.write { try $0.execute(sql: Self.properties) }
        try migrator.migrate(pool)
        try pool.read { try check.verify($0, in: place) }
    }

    /// The table of the store's own properties, created before the first migration.
    static let properties =
        "CREATE TABLE IF NOT EXISTS property (name TEXT PRIMARY KEY NOT NULL, value BLOB NOT NULL) WITHOUT ROWID"

    /// Whether a later version of this program has changed the tables of a part known to this one. Unknown parts are ignored.
    func isNewer(_ db: Database) throws -> Bool {
        let known = Set(migrator.migrations)
        return try applied(db).contains { identifier in
            guard !known.contains(identifier) else { return false }
            // Begins with a number instead of a part's name: of a format that this release does not know.
            if let number = identifier.split(separator: " ").first, Int(number) != nil { return true }
            return parts.contains { identifier.hasPrefix($0.name + " ") && Int(identifier.dropFirst($0.name.count + 1)) != nil }
        }
    }

    func isComplete(_ db: Database) throws -> Bool {
        try migrator.hasCompletedMigrations(db)
    }

    /// Whether the database was created by this program.
    func isKnown(_ db: Database) throws -> Bool {
        try !applied(db).isEmpty
    }

    /// Identifiers of the applied migrations; empty if the migrations table is not a valid one: see ``SchemaCheck``.
    func applied(_ db: Database) throws -> [String] {
        guard try String.fetchOne(db, sql: "SELECT type FROM sqlite_master WHERE name = 'grdb_migrations'") == "table" else { return [] }
        return try String.fetchAll(db, sql: "SELECT identifier FROM grdb_migrations")
    }
}
