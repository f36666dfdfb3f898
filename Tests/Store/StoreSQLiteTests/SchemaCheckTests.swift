import Foundation
import GRDB
import Storage
import TestSupport
import Testing
import WakuCrypto

@testable import StoreSQLite

/// Databases with tables, indexes or triggers of another origin.
@Suite(.timeLimit(.minutes(5)))
struct SchemaCheckTests {
    private static let version = Storage.Column("version", .integer)
    private static let content = Storage.Column("content", .bytes, isOptional: true)
    private static let table = Storage.Table(
        "thing", columns: [version, content], unique: [version], indexes: [Storage.Index("thing_content", on: [content])],
        sealed: SealedColumn(content, boundTo: [version], label: "things"))
    private static let part = StorePart("things", tables: [table])

    private let folder: TemporaryFolder
    private let storageKey = SymmetricKey.random()
    private var path: String { DataFolder.databasePath(in: folder.path) }

    init() throws {
        folder = try TemporaryFolder()
        try open().close()
    }

    private func open(_ parts: [StorePart] = [Self.part]) throws -> SQLiteStore {
        try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: parts)
    }

    /// Changes the file without hardening, as its author would.
    private func change(_ sql: String) throws {
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
        try queue.close()
    }

    private static let recreated = "DROP TABLE thing; CREATE TABLE thing"
    private static let index = "CREATE INDEX thing_content ON thing (content)"

    @Test(
        "A foreign object is refused at the start, by the check and by a restore, in one line that names it",
        arguments: [
            ("CREATE TRIGGER own AFTER INSERT ON thing BEGIN DELETE FROM thing; END", "trigger own on thing: drop it"),
            ("CREATE TRIGGER sqlite_own AFTER INSERT ON property BEGIN DELETE FROM property; END", ""),
            ("CREATE VIEW things AS SELECT * FROM thing", "view things"),
            ("CREATE UNIQUE INDEX once ON thing (content)", "index once on thing: drop it"),
            ("CREATE INDEX computed ON thing (zeroblob(version))", "index computed on thing: drop it"),
            ("CREATE INDEX folded ON thing (content COLLATE nocase)", "index folded"),
            ("CREATE INDEX some ON thing (content) WHERE abs(version) > 1", "index some"),
            ("CREATE VIRTUAL TABLE found USING fts5(word)", "virtual table found"),
            ("DROP INDEX thing_content", "index thing_content is missing: CREATE INDEX thing_content ON thing (content)"),
            ("DROP INDEX thing_content; CREATE INDEX thing_content ON thing (version)", "index thing_content differs"),
            ("DROP TABLE thing", "table thing is missing"),
            ("DROP TABLE thing; DROP TABLE property", "table property is missing"),
            ("ALTER TABLE thing ADD COLUMN big AS (zeroblob(1000000000))", "table thing was altered (see"),
            (
                "\(recreated) (id INTEGER PRIMARY KEY, version INTEGER NOT NULL, content BLOB, UNIQUE (version) ON CONFLICT IGNORE); \(index)",
                "table thing was altered (see on)"
            ),
            (
                "\(recreated) (id INTEGER PRIMARY KEY, version INTEGER NOT NULL, content BLOB, UNIQUE (version), CHECK (version < 9)); \(index)",
                "table thing was altered"
            ),
            (
                "\(recreated) (id INTEGER PRIMARY KEY, version INTEGER \"NOT\" \"NULL\", content BLOB, UNIQUE (version)); \(index)",
                "table thing was altered"
            ),
            ("DROP TABLE thing; CREATE VIEW thing AS SELECT 1 AS id, 2 AS version, x'' AS content", "thing"),
            ("DROP TABLE property; CREATE TABLE property (name TEXT PRIMARY KEY NOT NULL, value BLOB)", "table property was altered"),
            (
                "CREATE TABLE copy AS SELECT * FROM grdb_migrations; DROP TABLE grdb_migrations; CREATE VIEW grdb_migrations AS SELECT * FROM copy",
                "grdb_migrations"
            ),
        ])
    func foreignObjects(sql: String, expected: String) throws {
        do {
            try change(sql)
        } catch {
            // SQLite reserves some names.
            return
        }
        let backup = folder.path + "/backup"
        try FileManager.default.copyItem(atPath: path, toPath: backup)
        let target = try DataFolder(locking: folder.path + "/target")
        let attempts: [() throws -> Void] = [
            { _ = try open() },
            { _ = try StoreInspection(of: path, storageKey: storageKey, parts: [Self.part]) },
            { _ = try StoreBackup.restore(backup, into: target, storageKey: storageKey, parts: [Self.part]) },
        ]
        for attempt in attempts {
            let error = #expect(throws: StoreError.self) { try attempt() }
            #expect(error?.code == .unsuitable || error?.code == .damaged, "\(String(describing: error))")
            if !sql.contains("VIEW grdb_migrations") {
                #expect(error?.message.contains("is not as waku-push creates it") == true, "\(String(describing: error))")
                #expect(error?.message.contains(expected) == true, "\(String(describing: error))")
            }
        }
        #expect(!FileManager.default.fileExists(atPath: DataFolder.databasePath(in: target.path)))
    }

    @Test(
        "A database that an operator maintained is not refused",
        arguments: ["ANALYZE", "VACUUM", "REINDEX", "CREATE INDEX own ON thing (version, content DESC)", "CREATE TABLE note (text TEXT)"])
    func maintenance(sql: String) throws {
        try change(sql)
        try open().close()
        #expect(try StoreInspection(of: path, storageKey: storageKey, parts: [Self.part]).isWhole)
    }

    @Test("A database that was written by a dump of SQL is not refused")
    func dumped() throws {
        let statements = try DatabaseQueue(path: path).read { db in
            try String.fetchAll(db, sql: "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
        }
        let copy = folder.path + "/copy"
        let queue = try DatabaseQueue(path: copy)
        try queue.write { db in
            for statement in statements { try db.execute(sql: statement.replacing("CREATE TABLE thing", with: "create table \"thing\"")) }
            try db.execute(sql: "ATTACH ? AS old", arguments: [path])
            for table in ["property", "grdb_migrations"] { try db.execute(sql: "INSERT INTO \(table) SELECT * FROM old.\(table)") }
        }
        try queue.close()
        #expect(try StoreInspection(of: copy, storageKey: storageKey, parts: [Self.part]).isWhole)
    }

    @Test("A trigger created while the daemon runs does not fire")
    func laterTrigger() async throws {
        let store = try open()
        try change("CREATE TRIGGER own AFTER INSERT ON thing BEGIN DELETE FROM thing; END")
        let insert = Mutation(Self.table, .insert([Self.version]))
        try await store.commit(.change([insert(.integer(1))]))
        #expect(try store.read(.find(Query(Self.table, [.count])()) { .done(try $0[0].integer(0)) }) == 1)
        try store.close()
    }

    @Test("Columns and indexes that a later migration added are expected")
    func grown() throws {
        let later = Storage.Column("later", .text, isOptional: true)
        let index = Storage.Index("thing_later", on: [later], where: .present(later))
        let new = Storage.Table(
            "thing", columns: [Self.version, Self.content, later], unique: [Self.version], indexes: Self.table.indexes + [index])
        let migrations: [StorePart.Migration] = [[.create(Self.table)], [.addColumn(later, to: new), .createIndex(index, on: new)]]
        let part = StorePart("things", tables: [new], migrations: migrations)
        // A backup of the previous release.
        #expect(try StoreInspection(of: path, storageKey: storageKey, parts: [part]).isWhole)
        try open([part]).close()
        try open([part]).close()
        #expect(try StoreInspection(of: path, storageKey: storageKey, parts: [part]).isWhole)
        try change("DROP INDEX thing_later")
        let error = #expect(throws: StoreError.self) { try open([part]) }
        #expect(
            error?.message.hasSuffix("CREATE INDEX thing_later ON thing (later) WHERE later IS NOT NULL") == true,
            "\(String(describing: error))")
    }
}
