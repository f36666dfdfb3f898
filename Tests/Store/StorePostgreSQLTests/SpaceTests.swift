import Storage
import TestSupport
import Testing
import WakuCrypto

@testable import StorePostgreSQL

@Suite("Space of a PostgreSQL server", .timeLimit(.minutes(5)))
struct SpaceTests {
    /// The server refuses new tables as if its disk were full, while other commits succeed.
    @Test(
        "A test for space finds none on a full disk, leaves nothing behind, and blames nothing else on space",
        arguments: [("53100", false), ("42501", true), (nil, true)])
    func hasSpace(state: String?, found: Bool) async throws {
        let address = try PostgreSQLAddress(try await PostgreSQLServer.shared().makeDatabase())
        let store = try PostgreSQLStore(address, storageKey: .random(), parts: [Counters.part], access: .exclusive)
        try await store.commit(Counters.add(1))
        let connection = try PostgreSQLConnection(to: address)
        if let state {
            let refuse = [
                "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION SQLSTATE ''\(state)''; END'",
                "CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE TABLE AS') EXECUTE FUNCTION refuse()",
            ]
            _ = try connection.run(refuse.map { Statement($0, isPrepared: false) })
        }
        #expect(try await store.queue.run { try $0.hasSpace() } == found)
        #expect(try await store.commit(Counters.increment(1)) == 0)
        #expect(try connection.run(Statement("SELECT 1 FROM pg_class WHERE relname LIKE '% space'", isPrepared: false)).rows.isEmpty)
        try store.close()
    }
}
