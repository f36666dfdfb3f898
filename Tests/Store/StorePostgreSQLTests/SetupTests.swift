import Foundation
import Storage
import TestSupport
import Testing
import WakuCrypto

@testable import StorePostgreSQL

@Suite("Opening a PostgreSQL database", .timeLimit(.minutes(5)))
struct SetupTests {
    private func refusal(_ address: PostgreSQLAddress, _ fixture: StoreFixture) -> StoreError? {
        #expect(throws: StoreError.self) { try PostgreSQLStore(address, storageKey: fixture.storageKey, parts: [Counters.part]) }
    }

    @Test("A server that may lose commits is refused", arguments: ["off", "local", "remote_write"])
    func synchronousCommit(value: String) throws {
        let fixture = try StoreFixture()
        let error = try refusal(fixture.address("-csynchronous_commit=\(value)"), fixture)
        #expect(error?.code == .unsuitable)
        #expect(error?.message.contains("synchronous_commit") == true)
    }

    @Test("A server with fsync off is refused")
    func fsync() throws {
        let server = try PostgreSQLServer(settings: ["fsync": "off"])
        let fixture = try StoreFixture(server)
        #expect(try refusal(fixture.address(), fixture)?.message.contains("fsync") == true)
    }

    @Test("An encoding other than UTF8 is refused")
    func encoding() throws {
        let fixture = try StoreFixture()
        let name = Database.randomSchema()
        let create = Statement("CREATE DATABASE \(name) ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0", isPrepared: false)
        _ = try fixture.connection().run(create)
        let address = try PostgreSQLAddress("host=\(fixture.server.folder) dbname=\(name) user=postgres")
        #expect(refusal(address, fixture)?.message.contains("UTF8") == true)
    }

    @Test("A missing schema is refused")
    func schema() throws {
        let fixture = try StoreFixture()
        let address = try PostgreSQLAddress("\(fixture.server.address) options=-csearch_path=missing")
        #expect(refusal(address, fixture)?.code == .unsuitable)
    }

    @Test("A read-only session is named, as a standby has it")
    func readOnly() throws {
        let fixture = try StoreFixture()
        let error = try refusal(fixture.address("-cdefault_transaction_read_only=on"), fixture)
        #expect(error?.code == .unavailable)
        #expect(error?.message.contains("is read-only (a standby, or transactions of this role are read-only): give the primary") == true)
    }

    @Test("The role's time limit of statements ends before the rest of the set-up")
    func statementTimeout() throws {
        #expect(try StoreFixture().connection().settings("test").first?.sql == "SET statement_timeout = 0")
    }

    @Test(
        "Settings of the role that are meant for other programs have no effect",
        arguments: [
            "quote_all_identifiers=on", "standard_conforming_strings=off", "default_transaction_isolation=serializable",
        ])
    func roleSettings(setting: String) async throws {
        let fixture = try StoreFixture()
        try await fixture.open("-c\(setting)").commit(Counters.add(1))
        // The tables are compared with those that it would create.
        let again = try fixture.open("-c\(setting)", access: .exclusive)
        #expect(try again.read(Counters.value(1)) == 0)
    }

    @Test("Each session is at read committed: at the role's serializable, nodes that start at the same time would fail")
    func isolation() throws {
        let server = try PostgreSQLServer.shared()
        let address = try PostgreSQLAddress(server.address + " options=-cdefault_transaction_isolation=serializable")
        let shown = try PostgreSQLConnection.open(address, name: "test").run(
            Statement("SELECT current_setting('transaction_isolation')", isPrepared: false))
        #expect(shown.rows.first?.values == [.text("read committed")])
    }

    @Test(
        "A node that is suspended within a read keeps no rows of other nodes from being removed for long; a command may pause",
        arguments: [(PostgreSQLStore.Access.shared, "1min"), (.beside, "0")])
    func suspendedReader(access: PostgreSQLStore.Access, limit: String) throws {
        let store = try StoreFixture().open(access: access)
        let shown = try store.pool.read { connection in
            try connection.run(Statement("SHOW idle_in_transaction_session_timeout", isPrepared: false))
        }
        #expect(shown.rows.first?.values == [.text(limit)])
    }

    @Test("A role without permission to create tables is refused")
    func permission() throws {
        let fixture = try StoreFixture()
        let role = Database.randomSchema()
        let connection = try fixture.connection()
        for sql in ["CREATE ROLE \(role) LOGIN", "GRANT USAGE ON SCHEMA \(fixture.schema) TO \(role)"] {
            _ = try connection.run(Statement(sql, isPrepared: false))
        }
        let address = try PostgreSQLAddress(
            "host=\(fixture.server.folder) dbname=postgres user=\(role) options=-csearch_path=\(fixture.schema)")
        #expect(refusal(address, fixture)?.code == .permission)
    }

    @Test("A schema that the role may not use is not reported as missing")
    func schemaWithoutUsage() throws {
        let fixture = try StoreFixture()
        let role = Database.randomSchema()
        _ = try fixture.connection().run(Statement("CREATE ROLE \(role) LOGIN", isPrepared: false))
        func error(_ schema: String) throws -> StoreError? {
            refusal(
                try PostgreSQLAddress("host=\(fixture.server.folder) dbname=postgres user=\(role) options='-csearch_path=\(schema)'"),
                fixture)
        }
        #expect(try error(fixture.schema)?.code == .permission)
        #expect(try error("missing")?.code == .unsuitable)
    }

    /// A pooler gives its clients a process number of its own.
    @Test("A connection pooler is refused")
    func pooler() throws {
        let fixture = try StoreFixture()
        let proxy = try PostgreSQLProxy(fixture.server)
        proxy.inspect { direction, bytes in
            // BackendKeyData: 'K', length 12, process, secret.
            let key: [UInt8] = [0x4B, 0, 0, 0, 12]
            guard direction == .toClient, let found = bytes.indices.first(where: { bytes[$0...].starts(with: key) }) else { return .pass }
            var bytes = bytes
            bytes[found + 8] ^= 0x55
            return .replace(bytes)
        }
        let error = try refusal(fixture.address(host: proxy.path), fixture)
        #expect(error?.code == .unsuitable)
        #expect(error?.message.contains("pooler") == true)
    }

    @Test("An unreachable server is reported in one line")
    func unreachable() throws {
        let (fixture, folder) = (try StoreFixture(), try TemporaryFolder())
        let error = try refusal(fixture.address(host: folder.path), fixture)
        #expect(error?.code == .unavailable)
        #expect(error?.message.contains("can't be reached") == true && error?.message.contains("\n") == false)
    }

    @Test("An exclusive store excludes other nodes while it is open, but not commands")
    func exclusive() async throws {
        let fixture = try StoreFixture()
        let first = try fixture.open(access: .exclusive)
        let error = #expect(throws: StoreError.self) { try fixture.open(access: .exclusive) }
        #expect(error?.code == .locked)
        let command = try fixture.open()
        try await command.commit(Counters.add(1))
        try await first.commit(Counters.add(2))
        try command.close()
        try first.close()
        let second = try fixture.open(access: .exclusive)
        #expect(try second.read(Counters.all()).count == 2)
    }

    @Test("An existing store needs its tables, and reads without the key")
    func existing() async throws {
        let fixture = try StoreFixture()
        let error = #expect(throws: StoreError.self) {
            try PostgreSQLStore(existing: fixture.address(), storageKey: nil, parts: [Counters.part])
        }
        #expect(error?.code == .missing)
        let store = try fixture.open()
        try await store.commit(Counters.add(1))
        let other = try PostgreSQLStore(existing: fixture.address(), storageKey: nil, parts: [Counters.part])
        #expect(try other.read(Counters.value(1)) == 0)
        let grown = StorePart("counters", tables: [Counters.table], migrations: [[.create(Counters.table)], []])
        #expect(throws: StoreError.self) { try PostgreSQLStore(existing: fixture.address(), storageKey: nil, parts: [grown]) }
        let wrong = #expect(throws: StoreError.self) {
            try PostgreSQLStore(existing: fixture.address(), storageKey: .random(), parts: [Counters.part])
        }
        #expect(wrong?.code == .otherIdentity)
    }

    private static let later = Column("later", .integer, isOptional: true)
    private static let former = Table("former", columns: [later])
    /// Three releases: the second adds a column, the third removes a table that only the first needs.
    private static let releases: [StorePart] = {
        let (first, grown) = (Counters.table, Table("counter", columns: Counters.table.columns + [later], unique: [Counters.number]))
        let migrations: [StorePart.Migration] = [
            [.create(first), .create(former)], [.addColumn(later, to: grown)],
            StorePart.Migration([.drop(table: former.name)], finishes: true),
        ]
        return [
            StorePart("counters", tables: [first, former], migrations: [migrations[0]]),
            StorePart("counters", tables: [grown, former], migrations: Array(migrations[..<2])),
            StorePart("counters", tables: [grown], migrations: migrations),
        ]
    }()

    @Test("Two releases use a database at once, until the later one finishes its migrations")
    func twoReleases() async throws {
        let fixture = try StoreFixture()
        func open(_ release: Int) throws -> PostgreSQLStore {
            try PostgreSQLStore(fixture.address(), storageKey: fixture.storageKey, parts: [Self.releases[release]], access: .shared)
        }
        let first = try open(0)
        try await first.commit(Counters.add(1))
        // One store is open, and one is opened after the tables have changed.
        let latest = try open(2)
        let again = try open(0)
        for (number, store) in [first, latest, again].enumerated() { try await store.commit(Counters.add(Int64(number) + 2)) }
        for store in [first, latest, again] { #expect(try store.read(Counters.all()).count == 4) }
        // Operations on the complete database are refused.
        try latest.requireNothingAdded()
        let refusal = #expect(throws: StoreError.self) { try first.requireNothingAdded() }
        #expect(refusal?.code == .newer)
        try again.close()

        let address = try fixture.address()
        // Only a release with these migrations can finish them.
        #expect(try PostgreSQLStore.finishMigrations(at: address, parts: [Self.releases[1]]) == [])
        #expect(try PostgreSQLStore.finishMigrations(at: address, parts: [Self.releases[2]]) == ["counters 3"])
        #expect(try PostgreSQLStore.finishMigrations(at: address, parts: [Self.releases[2]]) == [])
        for release in 0..<2 {
            let error = #expect(throws: StoreError.self) { try open(release) }
            #expect(error?.code == .newer)
        }
        try await latest.commit(Counters.add(5))
        let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'former'"
        #expect(try fixture.connection().run(Statement(tables)).rows == [Row([.integer(0)])])
    }

    @Test("Migrations are not finished while a node uses the database exclusively")
    func finishingAlone() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open(access: .exclusive)
        let error = #expect(throws: StoreError.self) {
            try PostgreSQLStore.finishMigrations(at: fixture.address(), parts: [Counters.part])
        }
        #expect(error?.code == .locked)
        try store.close()
        #expect(try PostgreSQLStore.finishMigrations(at: fixture.address(), parts: [Counters.part]) == [])
    }

    @Test("A database of a release without the column only_adds is migrated")
    func olderListOfMigrations() throws {
        let fixture = try StoreFixture()
        try PostgreSQLStore(fixture.address(), storageKey: fixture.storageKey, parts: [Self.releases[0]]).close()
        _ = try fixture.connection().run(Statement("ALTER TABLE store_migration DROP COLUMN only_adds", isPrepared: false))
        for release in [0, 1, 0] {
            #expect(throws: Never.self, "release \(release)") {
                try PostgreSQLStore(fixture.address(), storageKey: fixture.storageKey, parts: [Self.releases[release]]).close()
            }
        }
    }

    @Test("Tables are not changed while a backup reads them, and the error names its session")
    func migrationDuringBackup() throws {
        let fixture = try StoreFixture()
        try PostgreSQLStore(fixture.address(), storageKey: fixture.storageKey, parts: [Self.releases[0]]).close()
        func later() throws {
            try PostgreSQLStore(fixture.address(), storageKey: fixture.storageKey, parts: [Self.releases[1]]).close()
        }
        let dump = try PostgreSQLConnection.open(fixture.address(), name: "pg_dump")
        _ = try dump.run(["BEGIN", "LOCK TABLE counter IN ACCESS SHARE MODE"].map { Statement($0, isPrepared: false) })
        let error = #expect(throws: StoreError.self) { try later() }
        #expect(error?.code == .locked)
        #expect(error?.message.contains("uses them: process \(dump.backendID), pg_dump, role postgres. Wait") == true)
        dump.rollBack()
        try later()
    }

    @Test("Commands leave no row in store_writer, a daemon exactly one")
    func writers() async throws {
        let fixture = try StoreFixture()
        for access in [PostgreSQLStore.Access.beside, .exclusive, .exclusive] {
            let store = try fixture.open(access: access)
            try await store.commit(Counters.upsertOne())
            try store.close()
        }
        let rows = try fixture.connection().run(Statement("SELECT name FROM store_writer")).rows
        #expect(rows == [Row([.text("node")])])
    }

    @Test("A node that was cut off for days writes again after another one was started")
    func rowOfCutOffNode() async throws {
        let fixture = try StoreFixture()
        let cutOff = try fixture.open(access: .shared)
        try await cutOff.commit(Counters.upsertOne())
        let connection = try fixture.connection()
        _ = try connection.run(
            [
                "UPDATE store_writer SET changed_at = now() - interval '20 days'",
                "INSERT INTO store_writer (name, batch, changed_at) VALUES ('killed', '', now() - interval '40 days')",
            ].map { Statement($0) })
        let started = try fixture.open(access: .shared)
        try await started.commit(Counters.upsertOne())
        #expect(try connection.run(Statement("SELECT 1 FROM store_writer WHERE name = 'killed'")).rows.isEmpty)
        await #expect(throws: Never.self) { try await cutOff.commit(Counters.upsertOne()) }
    }
}

extension Counters {
    fileprivate static func upsertOne() -> StoreCommand<Void> { .change([upsert(.integer(1), .integer(1))]) }
}
