import Storage
import TestSupport
import Testing

@testable import StorePostgreSQL

@Suite("Exchanges with a server", .timeLimit(.minutes(5)))
struct ExchangeTests {
    @Test("A failure of a preceding statement is reported for the first statement, and it is not sent twice")
    func preceding() throws {
        let fixture = try StoreFixture()
        let connection = try PostgreSQLConnection.open(fixture.address(), name: "test")
        connection.precede(by: [Statement("SELECT 1::bigint"), Statement("SELECT 1 / 0")])
        let error = #expect(throws: PostgreSQLError.self) {
            try connection.run([Statement("SELECT 2::bigint"), Statement("SELECT 3::bigint")])
        }
        if case .refused(_, let statement)? = error { #expect(statement == 0) } else { Issue.record("\(String(describing: error))") }
        #expect(try connection.run(Statement("SELECT 2::bigint")).rows == [Row([.integer(2)])])
        connection.precede(by: [Statement("SELECT 1::bigint")])
        let results = try connection.run([Statement("SELECT 2::bigint"), Statement("SELECT 3::bigint")])
        #expect(results.map(\.rows) == [[Row([.integer(2)])], [Row([.integer(3)])]])
        connection.precede(by: [Statement("SELECT 1 / 0")])
        #expect(connection.discardPreceding().count == 1)
        #expect(try connection.run(Statement("SELECT 4::bigint")).rows == [Row([.integer(4)])])
    }

    @Test("Unawaited results are read before those of the next statements")
    func unawaited() throws {
        let fixture = try StoreFixture()
        let connection = try PostgreSQLConnection.open(fixture.address(), name: "test")
        for _ in 0..<3 { try connection.runUnawaited(Statement("SELECT 1::bigint")) }
        #expect(try connection.run(Statement("SELECT 2::bigint")).rows == [Row([.integer(2)])])
        #expect(try connection.run(Statement("SELECT 1::bigint")).rows == [Row([.integer(1)])])
        try connection.runUnawaited(Statement("SELECT 1 / 0"))
        #expect(throws: PostgreSQLError.self) { try connection.run(Statement("SELECT 2::bigint")) }
        #expect(connection.isLost)
    }
}
