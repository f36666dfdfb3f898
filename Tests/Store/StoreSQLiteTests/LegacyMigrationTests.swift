import Foundation
import GRDB
import Core
import Storage
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import Delivery
@testable import StatusServer
@testable import StoreSQLite

@Suite("Migration of databases from before tables belonged to parts")
struct LegacyMigrationTests {
    private static let handled = Table("handled", columns: [Column("at", .integer), Column("hashes", .bytes)])
    private static let parts = [DeliveryStorage.part, StorePart("node", tables: [handled]), StatusStorage.part]
    private static let tables = ["registration", "outbox", "accepted", "doubt", "topic_key", "answer", "handled", "property"]

    private static func bytes(_ value: UInt8, _ count: Int) -> Value { .bytes([UInt8](repeating: value, count: count)) }

    private let keyHash = Self.bytes(7, 64)
    private let topic = "0x0707"

    private func open(_ database: LegacyDatabase) throws -> SQLiteStore {
        try SQLiteStore(folder: database.folder.path, storageKey: database.storageKey, parts: Self.parts)
    }

    /// A database with every kind of row that the tables of version 1 can hold, and those of version 3.
    private func filled(version: Int) throws -> LegacyDatabase {
        let database = try LegacyDatabase(version: version)
        let sealer = database.sealer
        func sealed(_ content: String, in table: Storage.Table, _ binding: Value...) -> Value {
            sealer.seal(Array(content.utf8), in: table, boundTo: binding)
        }
        var statements: [(sql: String, arguments: [Value])] = [
            (
                "INSERT INTO registration VALUES (3, ?, ?, -2, 11, 1, 100, 200, ?\(version >= 3 ? ", NULL" : "")\(version >= 4 ? ", NULL" : ""))",
                [keyHash, .bytes([1]), sealed("registration", in: StatusStorage.registration, keyHash, .integer(-2), .bytes([1]))]
            ),
            (
                "INSERT INTO registration (id, key_hash, installation, version, changed_at) VALUES (5, ?, ?, 9, 12)",
                [keyHash, .bytes([2, 0, 3])]
            ),
            // One row was deleted: its id must not be assigned again.
            (
                "INSERT INTO outbox VALUES (41, ?, 3, 1000, ?)",
                [Self.bytes(1, 32), sealed("waits", in: DeliveryStorage.outbox, Self.bytes(1, 32))]
            ),
            (
                "INSERT INTO outbox VALUES (42, ?, 3, 1001, ?)",
                [Self.bytes(2, 32), sealed("gone", in: DeliveryStorage.outbox, Self.bytes(2, 32))]
            ),
            ("DELETE FROM outbox WHERE id = 42", []),
            ("INSERT INTO accepted (id, delivery, at) VALUES (1, ?, 20)", [Self.bytes(3, 32)]),
            ("INSERT INTO answer VALUES (6, ?, ?, 31)", [Self.bytes(4, 32), .bytes([0, 2])]),
            ("INSERT INTO property VALUES ('cursor', ?)", [.bytes([1, 2, 3])]),
        ]
        if version >= 2 {
            statements += [
                (
                    "INSERT INTO accepted VALUES (2, ?, 21, 3, -2, ?, 1)",
                    [Self.bytes(5, 32), Self.bytes(3, 32)]
                ),
                ("INSERT INTO doubt VALUES (3, -2, 4, 50, 60, 70)", []), ("INSERT INTO doubt VALUES (8, 1, 1, 51, 61, NULL)", []),
            ]
        }
        if version >= 3 {
            statements += [
                ("UPDATE registration SET message = 77 WHERE id = 3", []),
                (
                    "INSERT INTO topic_key VALUES (-88, ?)",
                    [sealer.seal(SymmetricKey.random(), in: StatusStorage.topicKey, boundTo: [.text(topic)])]
                ),
            ]
        }
        if version >= 4 {
            statements.append(
                (
                    "INSERT INTO registration (id, key_hash, installation, version, changed_at, unfounded) VALUES (6, ?, ?, 1, 13, 1)",
                    [Self.bytes(8, 64), .bytes([3])]
                ))
        }
        if version >= 5 {
            statements.append(("INSERT INTO handled VALUES (2, 14, ?)", [Self.bytes(6, 64)]))
        }
        try database.execute(statements)
        return database
    }

    private func values(_ sql: String, _ store: SQLiteStore) throws -> [[Value]] {
        try store.pool.read { db in
            try GRDB.Row.fetchAll(db, sql: sql).map { row in
                row.databaseValues.map { value in
                    switch value.storage {
                    case .null: .null
                    case .int64(let integer): .integer(integer)
                    case .double: .text("a floating-point number")
                    case .string(let text): .text(text)
                    case .blob(let data): .bytes(Array(data))
                    }
                }
            }
        }
    }

    // MARK: Rows

    @Test("Every row is migrated to its new form", arguments: 1...LegacyDatabase.versionCount)
    func rows(version: Int) throws {
        let store = try open(try filled(version: version))
        let (one, two, none) = (Value.integer(1), Value.integer(2), Value.null)
        let registrations = try values(
            """
            SELECT id, key_hash, installation, version, changed_at, platform, query_topic, published_query_topic, sealed IS NULL, message,
            unfounded FROM registration ORDER BY id
            """, store)
        var expected: [[Value]] = [
            [
                .integer(3), keyHash, .bytes([1]), .integer(-2), .integer(11), one, .integer(100), .integer(200), .integer(0),
                version >= 3 ? .integer(77) : none, none,
            ],
            [.integer(5), keyHash, .bytes([2, 0, 3]), .integer(9), .integer(12), none, none, none, one, none, none],
        ]
        if version >= 4 {
            expected.append([.integer(6), Self.bytes(8, 64), .bytes([3]), one, .integer(13), none, none, none, one, none, one])
        }
        #expect(registrations == expected)
        #expect(
            try values("SELECT id, delivery, device, expires_at, protocol FROM outbox", store)
                == [[.integer(41), Self.bytes(1, 32), .integer(3), .integer(1000), one]])
        var accepted: [[Value]] = [[one, Self.bytes(3, 32), .integer(20), none, none, none, none, none]]
        if version >= 2 {
            accepted.append([two, Self.bytes(5, 32), .integer(21), .integer(3), .integer(-2), Self.bytes(3, 32), one, one])
        }
        #expect(
            try values("SELECT id, delivery, at, device, version, posted_as, has_failed, protocol FROM accepted ORDER BY id", store)
                == accepted)
        let doubts = try values(
            "SELECT protocol, device, version, failures, first_failure, last_failure, unfailed_since FROM doubt ORDER BY device", store)
        #expect(
            doubts
                == (version >= 2
                    ? [
                        [one, .integer(3), .integer(-2), .integer(4), .integer(50), .integer(60), .integer(70)],
                        [one, .integer(8), one, one, .integer(51), .integer(61), none],
                    ] : []))
        #expect(try values("SELECT id FROM topic_key", store) == (version >= 3 ? [[.integer(-88)]] : []))
        #expect(
            try values("SELECT id, message, codes, at FROM answer", store)
                == [[.integer(6), Self.bytes(4, 32), .bytes([0, 2]), .integer(31)]])
        #expect(try values("SELECT * FROM handled", store) == (version >= 5 ? [[two, .integer(14), Self.bytes(6, 64)]] : []))
        #expect(try store.read(Properties.property("cursor")) == [1, 2, 3])
        try store.close()
    }

    @Test("Sealed contents still open", arguments: [1, 3, 5])
    func contents(version: Int) throws {
        let database = try filled(version: version)
        let store = try open(database)
        let registration = try #require(
            try values("SELECT key_hash, version, installation, sealed FROM registration WHERE id = 3", store).first)
        guard case .bytes(let sealed) = registration[3] else { Issue.record("no content"); return }
        #expect(
            try store.sealer.open(sealed, in: StatusStorage.registration, boundTo: Array(registration[..<3])) == Array("registration".utf8))
        let stored = try #require(try store.read(DeliveryStorage.stored([41])).first)
        #expect(try store.sealer.open(stored.sealed, in: DeliveryStorage.outbox, boundTo: [Self.bytes(1, 32)]) == Array("waits".utf8))
        if version >= 3, case .bytes(let sealed)? = try values("SELECT sealed FROM topic_key", store).first?[0] {
            #expect(store.sealer.openKey(sealed, in: StatusStorage.topicKey, boundTo: [.text(topic)]) != nil)
        }
        try store.close()
        let inspection = try StoreInspection(of: database.path, storageKey: database.storageKey, parts: Self.parts)
        #expect(inspection.isWhole)
        #expect(inspection.rows == ["registrations": .init(count: 1), "notifications": .init(count: 1)])
    }

    @Test("Current commands find rows stored by older versions")
    func commands() async throws {
        let store = try open(try filled(version: 5))
        let device = DeviceID(StatusStorage.protocolNumber, row: 3)
        let waiting = try store.read(DeliveryStorage.waitingDeliveries())
        #expect(waiting.map(\.id) == [41] && waiting.map(\.device) == [device])
        let posted = try store.read(DeliveryStorage.posted(under: [UInt8](repeating: 3, count: 16)))
        #expect(posted.map(\.device) == [device] && posted.map(\.version) == [UInt64(bitPattern: -2)])
        #expect(try store.read(DeliveryStorage.doubt(of: device))?.failureCount == 4)
        #expect(try store.read(AnswerStorage.answer(to: [UInt8](repeating: 4, count: 32))) == [0, 2])
        #expect(try store.read(Registrations.countedRegistrations()) == 2)
        try await store.commit(.change(DeliveryStorage.forget(device)))
        #expect(try store.read(DeliveryStorage.waitingCount()) == 0)
        #expect(try store.read(DeliveryStorage.doubt(of: device)) == nil)
    }

    @Test("Outbox ids are never reassigned", arguments: [false, true])
    func outboxIDs(isEmpty: Bool) async throws {
        let database = try filled(version: 5)
        if isEmpty { try database.execute([("DELETE FROM outbox", [])]) }
        let store = try open(database)
        let delivery = try #require(DeliveryID(bytes: [UInt8](repeating: 9, count: 32)))
        let device = DeviceID(StatusStorage.protocolNumber, row: 3)
        let change = DeliveryStorage.enqueue(delivery, for: device, payload: [], expires: Timestamp(rawValue: 1), by: store.sealer)
        #expect(try await store.commit(.apply([change]) { $0 }) == [43])
    }

    // MARK: Schema

    @Test("The schema is that of a new database", arguments: 1...LegacyDatabase.versionCount)
    func schema(version: Int) throws {
        let folder = try TemporaryFolder()
        let new = try SQLiteStore(folder: folder.path, storageKey: .random(), parts: Self.parts)
        let old = try open(try filled(version: version))
        for table in Self.tables {
            #expect(try values("PRAGMA table_xinfo(\(table))", old) == values("PRAGMA table_xinfo(\(table))", new), "\(table)")
            let indexes = try values("SELECT name FROM pragma_index_list('\(table)') ORDER BY name", new)
            #expect(try values("SELECT name FROM pragma_index_list('\(table)') ORDER BY name", old) == indexes, "\(table)")
            let properties = "SELECT name, \"unique\", origin, partial FROM pragma_index_list('\(table)') ORDER BY name"
            #expect(try values(properties, old) == values(properties, new), "\(table)")
            for case .text(let index) in indexes.map(\.[0]) {
                #expect(try values("PRAGMA index_xinfo(\(index))", old) == values("PRAGMA index_xinfo(\(index))", new), "\(index)")
                #expect(try condition(of: index, old) == condition(of: index, new), "\(index)")
            }
            #expect(try isAutoincrement(table, old) == isAutoincrement(table, new), "\(table)")
        }
        let names = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
        #expect(try values(names, old) == values(names, new))
        #expect(try old.pool.read(old.schema.isComplete))
        #expect(try isAutoincrement("outbox", new))
    }

    /// The condition of a partial index.
    private func condition(of index: String, _ store: SQLiteStore) throws -> String? {
        guard case .text(let sql)? = try values("SELECT sql FROM sqlite_master WHERE name = '\(index)'", store).first?[0] else {
            return nil
        }
        return sql.components(separatedBy: "WHERE").dropFirst().first?.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    private func isAutoincrement(_ table: String, _ store: SQLiteStore) throws -> Bool {
        guard case .text(let sql)? = try values("SELECT sql FROM sqlite_master WHERE name = '\(table)'", store).first?[0] else {
            return false
        }
        return sql.contains("AUTOINCREMENT")
    }

    // MARK: Copies

    @Test("A backup of an older version is inspected and restored, and migrated when it is opened", arguments: [1, 3, 5])
    func backups(version: Int) throws {
        let database = try filled(version: version)
        let backup = database.folder.path + "/backup.sqlite"
        try FileManager.default.copyItem(atPath: database.path, toPath: backup)
        let target = try TemporaryFolder()
        let folder = try DataFolder(locking: target.path)
        let later = Table("later", columns: [StatusStorage.sealed], sealed: SealedColumn(StatusStorage.sealed, boundTo: [], label: "later"))
        let parts = Self.parts + [StorePart("later", tables: [later])]
        let inspection = try StoreBackup.restore(backup, into: folder, storageKey: database.storageKey, parts: parts)
        #expect(inspection.isWhole)
        #expect(inspection.rows == ["registrations": .init(count: 1), "notifications": .init(count: 1), "later": .init()])
        let store = try SQLiteStore(folder: target.path, storageKey: database.storageKey, parts: parts)
        #expect(try store.read(DeliveryStorage.waitingCount()) == 1)
    }

    @Test("A database of an older version is not opened beside a daemon; one of a later version is refused")
    func refused() throws {
        let database = try filled(version: 5)
        let older = #expect(throws: StoreError.self) {
            try SQLiteStore(existing: database.folder.path, storageKey: database.storageKey, parts: Self.parts)
        }
        #expect(older?.message.contains("older version") == true)
        try database.execute([("INSERT INTO grdb_migrations VALUES ('6 something else')", [])])
        let newer = #expect(throws: StoreError.self) { try open(database) }
        #expect(newer?.code == .newer)
    }
}
