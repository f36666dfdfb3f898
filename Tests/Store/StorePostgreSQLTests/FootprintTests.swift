import Storage
import Synchronization
import TestSupport
import Testing

@testable import StorePostgreSQL

@Suite("Which commands are decided together", .timeLimit(.minutes(5)))
struct FootprintTests {
    private static let number = Counters.find(.integer(1))
    private static let owner = Counters.countOfOwner(.integer(7))
    private static let among = Query(Counters.table, [Counters.count], where: [.idAmong])(ids: [4, 5])
    private static let numbers = Query(Counters.table, [Counters.count], where: [.among(Counters.number)])(ids: [4, 5])

    @Test(
        "A read may meet a change unless a column tells them apart",
        arguments: [
            // They share a column and a value in it.
            (Self.number, Counters.insert(.integer(1), .integer(0), .null), true),
            (Self.number, Counters.insert(.integer(2), .integer(0), .null), false),
            (Self.number, Counters.upsert(.integer(2), .integer(0)), false),
            (Self.number, Counters.removeByNumber(.integer(1)), true), (Self.number, Counters.removeByNumber(.integer(2)), false),
            // The number of the changed row is unknown.
            (Self.number, Counters.removeByID(.integer(9)), true), (Self.number, Counters.removeLow(.integer(0)), true),
            // A change may move a row into the result of a read, or out of it.
            (Self.owner, Counters.setOwner(.integer(7), .integer(2)), true),
            (Self.owner, Counters.setOwner(.integer(8), .integer(2)), true),
            (Self.owner, Counters.moveAll(.integer(7), .integer(3)), true), (Self.owner, Counters.moveAll(.integer(8), .integer(3)), false),
            // The previous columns of an upsert's row are unknown.
            (Self.owner, Counters.upsert(.integer(2), .integer(0)), true),
            (Self.among, Counters.removeByID(.integer(5)), true), (Self.among, Counters.removeByID(.integer(6)), false),
            (Self.numbers, Counters.removeByNumber(.integer(5)), true), (Self.numbers, Counters.removeByNumber(.integer(6)), false),
            // Another table.
            (Self.number, Properties.set("name", to: [1]), false),
        ])
    func meeting(read: Read, change: Change, mayMeet: Bool) {
        #expect(Footprint(change, RowFacts()).mayMeet(Footprint(read)) == mayMeet)
    }

    @Test("A change by id is matched to the row that the command read")
    func facts() {
        var facts = RowFacts()
        facts.note(Counters.find(.integer(2)), [Row([.integer(9), .integer(0)])])
        let change = Footprint(Counters.setByID(.integer(1), .integer(9), .integer(0)), facts)
        #expect(!change.mayMeet(Footprint(Self.number)))
        #expect(change.mayMeet(Footprint(Counters.find(.integer(2)))))
        #expect(change.mayMeet(Footprint(Counters.countAll())))
    }

    @Test("Rows of a large read are not searched: a change of one may meet any read", arguments: [(256, false), (257, true)])
    func manyFacts(count: Int64, mayMeet: Bool) {
        var facts = RowFacts()
        facts.note(Counters.find(.integer(2)), (1...count).map { Row([.integer($0), .integer(0)]) })
        let change = Footprint(Counters.setByID(.integer(1), .integer(9), .integer(0)), facts)
        #expect(change.mayMeet(Footprint(Self.number)) == mayMeet)
    }

    /// The number of pieces that the store sends for these commands.
    private func sendings(for commands: [StoreCommand<Int64>]) async throws -> Int {
        let fixture = try StoreFixture()
        let proxy = try PostgreSQLProxy(fixture.server)
        let store = try fixture.open(host: proxy.path)
        try await store.commit(.all((0..<100).map { Counters.add($0) }))
        // Prepares the statements.
        for result in await store.commitEach([0, 0, 99].map { Counters.increment($0) }) { try _ = result.get() }
        let count = Mutex<Int>.Box()
        proxy.inspect { direction, _ in
            if direction == .toServer { _ = count.increment() }
            return .pass
        }
        for result in await store.commitEach(commands) { try _ = result.get() }
        return count.value
    }

    @Test("Independent commands share exchanges: reads, changes and the commit")
    func independent() async throws {
        // A large exchange may be sent in several pieces.
        #expect(try await sendings(for: (0..<100).map { Counters.increment($0) }) < 12)
    }

    @Test("Each command that depends on the previous one takes one more exchange")
    func dependent() async throws {
        let count = try await sendings(for: (0..<20).map { _ in Counters.increment(1) })
        #expect((22...30).contains(count))
    }
}
