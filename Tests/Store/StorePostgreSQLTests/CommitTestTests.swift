import Storage
import TestSupport
import Testing

@testable import StorePostgreSQL

@Suite struct CommitTestTests {
    @Test("A commit succeeds, and one that the standby does not confirm fails in time and leaves no session")
    func standbyAway() async throws {
        let server = try PostgreSQLServer()
        let address = try PostgreSQLAddress("host=\(server.folder) dbname=postgres user=postgres")
        try CommitTest.run(at: address, within: .seconds(20))
        try await server.run("ALTER SYSTEM SET synchronous_standby_names = 'away'", "SELECT pg_reload_conf()")
        try await eventually { (try? setting(address)) == "away" }
        let start = ContinuousClock.now
        let error = #expect(throws: StoreError.self) { try CommitTest.run(at: address, within: .seconds(1)) }
        #expect(error?.message.contains("has not committed within 1 s") == true)
        #expect(start.duration(to: .now) < .seconds(10))
        try await eventually { (try? sessions(address)) == 0 }
    }

    /// The function stands before that of the server in the search path.
    @Test("A warning before the commit does not count as a missing standby")
    func otherWarning() throws {
        let fixture = try StoreFixture()
        let function = """
            CREATE FUNCTION pg_logical_emit_message(boolean, text, text) RETURNS text LANGUAGE plpgsql AS \
            'BEGIN RAISE WARNING ''10000000 left''; RETURN ''''; END'
            """
        _ = try fixture.connection().run(Statement(function, isPrepared: false))
        let path = "\(fixture.schema),pg_catalog"
        let address = try PostgreSQLAddress("host=\(fixture.server.folder) dbname=postgres user=postgres options=-csearch_path=\(path)")
        let connection = try PostgreSQLConnection.open(address, name: "test")
        _ = try connection.run(Statement("SELECT pg_logical_emit_message(true, '', '')", isPrepared: false))
        #expect(connection.warningCount == 1)
        try CommitTest.run(at: address, within: .seconds(20))
    }

    @Test("A database that others exclude is reported at once, and the test excludes nobody")
    func lock() async throws {
        let server = try PostgreSQLServer()
        let address = try PostgreSQLAddress("host=\(server.folder) dbname=postgres user=postgres")
        let node = try PostgreSQLConnection.open(address, name: "test")
        try CommitTest.lock(at: address, isShared: false)
        try Writer.lock(node, at: address, .shared)
        try CommitTest.lock(at: address, isShared: true)
        let error = #expect(throws: StoreError.self) { try CommitTest.lock(at: address, isShared: false) }
        #expect(error?.code == .locked && error?.message.contains("or all nodes of a cluster") == true)
        withExtendedLifetime(node) {}
    }

    private func setting(_ address: PostgreSQLAddress) throws -> String? {
        let rows = try PostgreSQLConnection.open(address, name: "test").run(
            Statement("SELECT current_setting('synchronous_standby_names')", isPrepared: false)
        ).rows
        guard case .text(let text)? = rows.first?.values.first else { return nil }
        return text
    }

    private func sessions(_ address: PostgreSQLAddress) throws -> Int64? {
        let select = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'waku-push commit test'"
        return try PostgreSQLConnection.open(address, name: "test").run(Statement(select, isPrepared: false)).rows.first?.integer(0)
    }
}
