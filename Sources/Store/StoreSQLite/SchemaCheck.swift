import GRDB
import Storage

/// Compares a database's tables, indexes and triggers with the schema that its migrations create. A database of another origin could hold a trigger
/// that removes each row again, a generated column that fills memory, or an index that refuses rows.
///
/// The expected schema results from the migrations that are recorded in the database, which may be those of an older release.
/// Tables that no migration names, and their indexes, are ignored: they belong to parts of other releases. Indexes over plain columns may be the
/// operator's.
struct SchemaCheck {
    private struct Object {
        let type, name, table, sql: String

        var key: String { "\(type) \(name)" }
        /// Created by SQLite itself.
        var isInternal: Bool { name.hasPrefix("sqlite_") && ["table", "index"].contains(type) }
    }

    private let schema: Schema

    init(_ schema: Schema) {
        self.schema = schema
    }

    /// - Parameter place: the name of the database in messages.
    /// - Throws: `StoreError` with `unsuitable` for the first difference, and errors of the database.
    func verify(_ db: Database, in place: String) throws {
        let differences = try differences(db)
        guard let first = differences.first else { return }
        let more = differences.count > 1 ? " (and \(differences.count - 1) more)" : ""
        throw StoreError(
            code: .unsuitable, message: "the database in \(place) is not as waku-push creates it\(more): \(first)")
    }

    private static let migrations = "grdb_migrations"

    private func differences(_ db: Database) throws -> [String] {
        let found = try Self.objects(db).filter { !$0.isInternal }
        // The migrations table lists the applied migrations: it must be a table, not a view, and have no generated columns.
        var expected = try expectation(applied: [])
        let isOwn = found.filter { $0.name == Self.migrations }.allSatisfy { Self.difference($0, expected) == nil }
        if isOwn, found.contains(where: { $0.name == Self.migrations }) {
            expected = try expectation(applied: Set(schema.applied(db)))
        }
        let names = Set(found.map(\.key))
        let missing = isOwn ? expected.filter { !names.contains($0.key) } : []
        return found.compactMap { Self.difference($0, expected) } + missing.map(Self.absence)
    }

    private static func objects(_ db: Database) throws -> [Object] {
        func text(_ column: String) -> String { "coalesce(CAST(\(column) AS TEXT), '')" }
        let sql = "SELECT \(text("type")), \(text("name")), \(text("tbl_name")), \(text("sql")) FROM sqlite_master ORDER BY rowid"
        return try GRDB.Row.fetchAll(db, sql: sql).map { Object(type: $0[0], name: $0[1], table: $0[2], sql: $0[3]) }
    }

    /// The problem with an object; nil when it is acceptable.
    private static func difference(_ object: Object, _ expected: [Object]) -> String? {
        let tokens = SQLTokens(object.sql)
        let name = "\(object.type) \(object.name.prefix(80))"
        if let own = expected.first(where: { $0.key == object.key }) {
            let wanted = SQLTokens(own.sql)
            if tokens == wanted { return nil }
            let place = tokens.difference(from: wanted).map { " (see \($0.prefix(40)))" } ?? ""
            return object.type == "index"
                ? "\(name) differs from its own\(place): drop it, then \(oneLine(own.sql))"
                : "\(name) was altered\(place): restore a backup"
        }
        switch object.type {
        case "table" where tokens.tokens.starts(with: ["create", "table"]):
            // Belongs to a part that this release does not know.
            return expected.contains { $0.name == object.name } ? "\(name) has the name of another object: restore a backup" : nil
        case "index" where !expected.contains(where: { $0.type == "table" && $0.name == object.table }) || tokens.isPlainIndex: return nil
        case "table": return "virtual \(name): drop it, or restore a backup"
        default: return "\(name) on \(object.table.prefix(80)): drop it, or restore a backup"
        }
    }

    private static func absence(_ object: Object) -> String {
        let remedy = object.type == "index" ? oneLine(object.sql) : "restore a backup"
        return "\(object.type) \(object.name) is missing: \(remedy)"
    }

    private static func oneLine(_ sql: String) -> String {
        sql.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    // MARK: Expectation

    /// The objects that the given migrations create.
    private func expectation(applied: Set<String>) throws -> [Object] {
        let memory = try DatabaseQueue()
        if !applied.isEmpty { try memory.write { try $0.execute(sql: Schema.properties) } }
        try schema.migrator { applied.contains($0) }.migrate(memory)
        return try memory.read { try Self.objects($0).filter { !$0.isInternal } }
    }
}
