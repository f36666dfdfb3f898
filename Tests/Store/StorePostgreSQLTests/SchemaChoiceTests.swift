import Storage
import TestSupport
import Testing
import WakuCrypto

@testable import StorePostgreSQL

@Suite("The schema of the tables", .timeLimit(.minutes(5)))
struct SchemaChoiceTests {
    /// A database of its own with a role that owns it.
    private struct Fixture: Sendable {
        let server: PostgreSQLServer
        let database: String
        let role = Database.randomSchema()
        let storageKey = SymmetricKey.random()

        init() async throws {
            server = try PostgreSQLServer.shared()
            database = try await server.makeDatabase()
            try await run("CREATE ROLE \(role) LOGIN", "ALTER DATABASE \(name) OWNER TO \(role)")
        }

        var name: String { database.split(separator: " ").first { $0.hasPrefix("dbname=") }.map { String($0.dropFirst(7)) } ?? "" }

        /// - Parameter path: the `search_path` of the connection string.
        func address(_ path: String? = nil, role: String? = nil) throws -> PostgreSQLAddress {
            let options = path.map { " options=-csearch_path=\($0)" } ?? ""
            return try PostgreSQLAddress("host=\(server.folder) dbname=\(name) user=\(role ?? self.role)\(options)")
        }

        func open(_ path: String? = nil, role: String? = nil, access: PostgreSQLStore.Access = .shared) throws -> PostgreSQLStore {
            try PostgreSQLStore(address(path, role: role), storageKey: storageKey, parts: [Counters.part], access: access)
        }

        func run(_ statements: String...) async throws {
            let connection = try PostgreSQLConnection(to: PostgreSQLAddress(database))
            for sql in statements { _ = try connection.run(Statement(sql, isPrepared: false)) }
        }

        /// The schemas with tables, in their order.
        func schemas() throws -> [String] {
            let select = "SELECT schemaname::text FROM pg_tables WHERE tablename = 'store_migration' ORDER BY 1"
            let connection = try PostgreSQLConnection(to: PostgreSQLAddress(database))
            return try connection.run(Statement(select, isPrepared: false)).rows.map { try $0.text(0) }
        }
    }

    @Test("A schema named like the role gets no second set of tables, and the nodes say so")
    func schemaOfTheRole() async throws {
        let fixture = try await Fixture()
        let running = try fixture.open()
        try await running.commit(Counters.add(1))
        try await fixture.run("CREATE SCHEMA \(fixture.role) AUTHORIZATION \(fixture.role)")

        let reason = "has the tables of waku-push in schema public, but search_path begins with schema \(fixture.role), which has none"
        let remedy = "ALTER ROLE \(fixture.role) IN DATABASE \(fixture.name) SET search_path = public"
        await running.maintain()
        #expect(running.failure?.contains(reason) == true, "\(running.failure ?? "")")
        // Three nodes start at once, and a command beside them.
        let errors = await withTaskGroup(of: StoreError?.self) { group in
            for isCommand in [false, false, false, true] {
                group.addTask {
                    do {
                        if isCommand {
                            _ = try PostgreSQLStore(existing: fixture.address(), storageKey: nil, parts: [Counters.part])
                        } else {
                            _ = try fixture.open()
                        }
                        return nil
                    } catch {
                        return error as? StoreError
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        for error in errors {
            #expect(error?.code == .unsuitable)
            #expect(error?.message.contains(reason) == true && error?.message.contains(remedy) == true, "\(error?.message ?? "")")
        }
        #expect(try fixture.schemas() == ["public"])

        try await fixture.run(remedy)
        #expect(try fixture.open().read(Counters.value(1)) == 0)
        await running.maintain()
        #expect(running.failure == nil)
        try await fixture.run(
            "ALTER ROLE \(fixture.role) IN DATABASE \(fixture.name) RESET search_path", "DROP SCHEMA \(fixture.role)")
        await running.maintain()
        #expect(running.failure == nil)
        #expect(try fixture.open().read(Counters.value(1)) == 0)
    }

    @Test("A schema that is not in search_path any more is found, also one that was renamed", arguments: ["public", "\"Former one\""])
    func schemaOutsideThePath(name: String) async throws {
        let fixture = try await Fixture()
        try await fixture.open().commit(Counters.add(1))
        if name != "public" { try await fixture.run("ALTER SCHEMA public RENAME TO \(name)") }
        try await fixture.run("CREATE SCHEMA other", "GRANT ALL ON SCHEMA other TO \(fixture.role)")
        try await fixture.run("ALTER ROLE \(fixture.role) SET search_path = other")
        let error = #expect(throws: StoreError.self) { try fixture.open(access: .exclusive) }
        #expect(error?.code == .unsuitable)
        #expect(error?.message.contains("in schema \(name), but search_path begins with schema other") == true, "\(error?.message ?? "")")
        #expect(try fixture.schemas().count == 1)
    }

    @Test("Several identities share a database, each in the schema that its connection string or its role has")
    func severalIdentities() async throws {
        let fixture = try await Fixture()
        try await fixture.open().commit(Counters.add(1))
        try await fixture.run("CREATE SCHEMA other", "GRANT ALL ON SCHEMA other TO \(fixture.role)")
        // Named, but before the schema with the tables: which one is meant is not clear.
        let error = #expect(throws: StoreError.self) { try fixture.open("other,public") }
        #expect(error?.message.contains("put the former first (options= of the store's address), or drop the latter") == true)
        try await fixture.open("other").commit(Counters.add(2))
        #expect(try fixture.open("other").read(Counters.value(1)) == nil)
        #expect(try fixture.open("public").read(Counters.value(1)) == 0)

        let second = Database.randomSchema()
        try await fixture.run("CREATE ROLE \(second) LOGIN", "CREATE SCHEMA \(second) AUTHORIZATION \(second)")
        try await fixture.open(role: second).commit(Counters.add(3))
        #expect(try fixture.schemas() == ["other", "public", second].sorted())
    }
}
