import Storage
import Synchronization
import TestSupport
import Testing

@testable import StorePostgreSQL

@Suite("Statements sent as one", .timeLimit(.minutes(5)))
struct StatementGroupsTests {
    private static func statements(_ changes: [Change]) throws -> [Statement] { try changes.map { try $0.statement() } }

    @Test("Changes of different tables are grouped across each other; those of one table keep their order")
    func order() throws {
        let other = Mutation(
            Table("other", columns: [Counters.number], unique: [Counters.number]), .delete(where: [.equal(Counters.number)]))
        let (insert, remove) = (Counters.insertOrIgnore(.integer(1), .integer(0), .null), Counters.removeByNumber(.integer(1)))
        let changes = [insert, other(.integer(1)), insert, other(.integer(2)), remove, other(.integer(3)), insert]
        let groups = StatementGroups(try Self.statements(changes), isGrouping: true, smallest: 2)
        #expect(groups.members == [[0, 2], [1, 3, 5], [4], [6]])
        #expect(StatementGroups(try Self.statements(changes), isGrouping: false).members == changes.indices.map { [$0] })
    }

    @Test("Nothing is moved across a statement without a scope")
    func barrier() throws {
        let reads = try (0..<4).map { try Counters.find(.integer($0)).statement() }
        let groups = StatementGroups([reads[0], reads[1], Statement("SELECT"), reads[2], reads[3]], isGrouping: true, smallest: 2)
        #expect(groups.members == [[0, 1], [2], [3, 4]])
    }

    @Test("Statements whose arguments can't be rows of arrays, or that may change several rows, stay single")
    func single() throws {
        let among = Query(Counters.table, [Counters.count], where: [.idAmong])
        let byOwner = Mutation(Counters.table, .update([Counters.count], where: [.equal(Counters.owner)]))
        let statements: [Statement] = [
            try among(ids: [1]).statement(), try Counters.countAll().statement(),
            try Counters.find(.integer(1), limit: 1, offset: 1).statement(),
            try Counters.moveAll(.integer(1), .integer(2)).statement(), try byOwner(.integer(1), .integer(2)).statement(),
            try Counters.removeLow(.integer(1)).statement(),
        ]
        for statement in statements {
            #expect(StatementGroups([statement, statement], isGrouping: true, smallest: 2).members == [[0], [1]], "\(statement.sql)")
        }
    }

    @Test("A change that the server refuses fails its command alone, and nothing is decided twice")
    func refused() async throws {
        let store = try StoreFixture().open()
        let decisions = Mutex<Int>.Box()
        let commands = (0..<10 as Range<Int64>).map { number in
            StoreCommand<Void>.find(Counters.find(.integer(number))) { _ in
                _ = decisions.increment()
                return .change([Counters.insert(number == 5 ? .null : .integer(number), .integer(0), .null)])
            }
        }
        let results = await store.commitEach(commands)
        #expect(results.map { (try? $0.get()) != nil } == (0..<10).map { $0 != 5 })
        #expect(decisions.value == 10)
    }

    @Test("Few statements stay single")
    func few() throws {
        let reads = try (0..<Int64(StatementGroups.smallest)).map { try Counters.find(.integer($0)).statement() }
        #expect(StatementGroups(reads, isGrouping: true).members.count == 1)
        #expect(StatementGroups(Array(reads.dropLast()), isGrouping: true).members.count == reads.count - 1)
    }

    @Test("Each read of a group has its own rows, in its order and up to its limit")
    func reads() async throws {
        let store = try StoreFixture().open()
        try await store.commit(.all((0..<10).map { .change([Counters.insert(.integer($0), .integer(0), .integer($0 % 3))]) }))
        let ofOwner = Query(
            Counters.table, [.column(Counters.number)], where: [.equal(Counters.owner)], order: [.descending(Counters.number)])
        let reads: [(owner: Int64, limit: Int, numbers: [Int64])] = [(1, 2, [7, 4]), (7, 2, []), (0, 3, [9, 6, 3]), (2, 1, [8])]
        let all = (0..<StatementGroups.smallest).flatMap { _ in reads }
        let commands = all.map { read in
            StoreCommand.find(ofOwner(.integer(read.owner), limit: read.limit)) { rows in .done(try rows.map { try $0.integer(0) }) }
        }
        let (read, committed) = (try store.readEach(commands), await store.commitEach(commands))
        for results in [read, committed] { #expect(try results.map { try $0.get() } == all.map(\.numbers)) }
    }

    @Test("Rows of all types are stored, and inserted ids are in the order of the commands")
    func inserts() async throws {
        let store = try StoreFixture().open()
        let insert = Mutation(Counters.table, .insert([Counters.number, Counters.count, Counters.owner, Counters.sealed]))
        let kinds: [[UInt8]?] = [[], nil, [0, 255], Array(repeating: 7, count: 5_000)]
        let rows: [(number: Value, owner: Value, content: [UInt8]?)] = (0..<16).map { (index: Int) in
            (.integer(Int64(99 - index)), index % 3 == 1 ? .null : .integer(.max), kinds[index % 4])
        }
        let commands: [StoreCommand<Int64>] = rows.map { row in
            StoreCommand.apply([insert(row.number, .integer(.min), row.owner, Value(row.content))]) { $0[0] }
        }
        let ids = try await store.commitEach(commands).map { try $0.get() }
        #expect(ids == ids.sorted())
        let all = Query(Counters.table, [.id, Counters.number, Counters.owner, Counters.sealed], order: [.ascending(.id)])
        let expected = zip(ids, rows).map { Row([.integer($0), $1.number, $1.owner, Value($1.content)]) }
        #expect(try store.read(.find(all()) { .done($0) }) == expected)
    }

    private static func succeeded<Outcome>(_ results: [Result<Outcome, StoreError>]) -> [Bool] { results.map { (try? $0.get()) != nil } }

    @Test("A conflict or an error in a group fails its own command only")
    func conflicts() async throws {
        let store = try StoreFixture().open()
        try await store.commit(Counters.add(3))
        #expect(Self.succeeded(await store.commitEach((Int64(1)...12).map(Counters.add))) == (1...12).map { $0 != 3 } as [Bool])
        // The second of two rows with the same number.
        let twice: [Int64] = Array(20...30) + [25]
        #expect(Self.succeeded(await store.commitEach(twice.map(Counters.add))) == twice.indices.map { $0 < 11 })
        // Of a row that is not there, and of a row that was changed before.
        let ids = try await store.commit(
            .read((Int64(1)...10).map { Counters.find(.integer($0)) }) { .done(try $0.map { try $0[0].integer(0) }) })
        let updates = (ids + [-1, ids[0]]).map { StoreCommand.change([Counters.setByID(.integer(8), .integer($0), .integer(0))]) }
        #expect(Self.succeeded(await store.commitEach(updates)) == updates.indices.map { $0 < 10 })
        #expect(try store.read(Counters.value(1)) == 8)
        let write = Mutation(Counters.table, .insertOrIgnore([Counters.number, Counters.count]))
        let writes = (Int64(1)...12).map { StoreCommand.change([write(.integer(40 + $0), $0 == 5 ? .null : .integer($0))]) }
        #expect(Self.succeeded(await store.commitEach(writes)) == (1...12).map { $0 != 5 })
        #expect(try store.read(Counters.value(52)) == 12)
    }
}
