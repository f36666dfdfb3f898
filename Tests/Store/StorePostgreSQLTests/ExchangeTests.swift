import Dispatch
import Storage
import Synchronization
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

    @Test("An exchange has room for 8 MiB of rows, or for one command")
    func room() {
        var room = ExchangeRoom()
        let admitted = [0, 5 << 20, 4 << 20, 3 << 20, 1, 0].map { room.admits($0) }
        #expect(admitted == [true, true, false, true, false, true])
        var large = ExchangeRoom()
        let one = [100 << 20, 1].map { large.admits($0) }
        #expect(one == [true, false])
    }

    @Test("A notification ends the wait for one")
    func notifications() throws {
        let fixture = try StoreFixture()
        let (listener, other) = (try fixture.connection(), try fixture.connection())
        _ = try listener.run(Statement("LISTEN \(fixture.schema)", isPrepared: false))
        _ = try other.run(Statement("NOTIFY \(fixture.schema), 'text'", isPrepared: false))
        let found = try listener.notifications(until: .now + .seconds(60), orReadable: -1)
        #expect(found.map(\.channel) == [fixture.schema] && found.map(\.payload) == ["text"])
    }

    @Test("Waits are rounded up to milliseconds and never endless")
    func pollTimeout() {
        let times: [(Duration, Int32)] = [
            (.seconds(-1), 0), (.zero, 0), (.nanoseconds(1), 1), (.milliseconds(1), 1), (.microseconds(1_001), 2), (.seconds(30), 30_000),
            (.seconds(Int64.max / 2), .max),
        ]
        for (left, milliseconds) in times { #expect(PostgreSQLConnection.pollTimeout(left) == milliseconds) }
    }

    @Test("Libraries from version 14 on are used", arguments: [(13_00_99, false), (14_00_00, true), (17_00_02, true)] as [(Int32, Bool)])
    func libraryVersion(version: Int32, isSupported: Bool) {
        #expect(PostgreSQLLibrary.supports(version) == isSupported)
    }

    @Test("A session in one schema sees its tables without their schema's name")
    func schema() throws {
        let fixture = try StoreFixture()
        let address = try PostgreSQLAddress(fixture.server.address).inSchema(fixture.schema)
        let connection = try PostgreSQLConnection.open(address, name: "test")
        #expect(try connection.run(Statement("SELECT current_schema()::text")).rows == [Row([.text(fixture.schema)])])
    }

    @Test("A probe is reported from its beginning, so that one that hangs is noticed")
    func probe() throws {
        let fixture = try StoreFixture()
        let events = Mutex<[String]>([])
        let writer = try Writer(fixture.address(), .beside, closing: DispatchSemaphore(value: 0)) { event in
            events.withLock { events in
                switch event {
                case .committing: events.append("committing")
                case .committed(nil): events.append("committed")
                case .committed, .failed: events.append("failed")
                }
            }
        }
        try writer.probe()
        #expect(events.withLock(\.self) == ["committing", "committed"])
        writer.close()
    }
}
