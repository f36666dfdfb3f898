import Storage
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
        let groups = StatementGroups(try Self.statements(changes), isGrouping: true)
        #expect(groups.members == [[0, 2], [1, 3, 5], [4], [6]])
        #expect(StatementGroups(try Self.statements(changes), isGrouping: false).members == changes.indices.map { [$0] })
    }

    @Test("Nothing is moved across a statement of no scope")
    func barrier() throws {
        let reads = try (0..<4).map { try Counters.find(.integer($0)).statement() }
        let groups = StatementGroups([reads[0], reads[1], Statement("SELECT"), reads[2], reads[3]], isGrouping: true)
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
            #expect(StatementGroups([statement, statement], isGrouping: true).members == [[0], [1]], "\(statement.sql)")
        }
    }

    @Test("Each read of a group has its own rows, in its order and up to its limit")
    func reads() async throws {
        let store = try StoreFixture().open()
        try await store.commit(
            .all((0..<10).map { number in .change([Counters.insert(.integer(number), .integer(0), .integer(number % 3))]) }))
        let ofOwner = Query(
            Counters.table, [.column(Counters.number)], where: [.equal(Counters.owner)], order: [.descending(Counters.number)])
        let commands = [(1, 2), (7, 2), (0, 3), (2, 1)].map { owner, limit in
            StoreCommand.find(ofOwner(.integer(owner), limit: limit)) { rows in .done(try rows.map { try $0.integer(0) }) }
        }
        let (read, committed) = (try store.readEach(commands), await store.commitEach(commands))
        for results in [read, committed] { #expect(try results.map { try $0.get() } == [[7, 4], [], [9, 6, 3], [8]]) }
    }

    @Test("Rows of all types are stored, and inserted ids are in the order of the commands")
    func inserts() async throws {
        let store = try StoreFixture().open()
        let insert = Mutation(Counters.table, .insert([Counters.number, Counters.count, Counters.owner, Counters.sealed]))
        let contents: [[UInt8]?] = [[], nil, [0, 255], Array(repeating: 7, count: 5_000)]
        let commands = contents.enumerated().map { index, content in
            StoreCommand.apply([insert(.integer(Int64(9 - index)), .integer(.min), index == 1 ? .null : .integer(.max), Value(content))]) {
                $0[0]
            }
        }
        let ids = try await store.commitEach(commands).map { try $0.get() }
        #expect(ids == ids.sorted())
        let all = Query(Counters.table, [.id, Counters.number, Counters.owner, Counters.sealed], order: [.ascending(.id)])
        let rows = try store.read(.find(all()) { .done($0) })
        let expected = zip(ids, contents).enumerated().map { index, row in
            Row([.integer(row.0), .integer(Int64(9 - index)), index == 1 ? .null : .integer(.max), Value(row.1)])
        }
        #expect(rows == expected)
    }

    @Test("A conflict or an error in a group fails its own command only")
    func conflicts() async throws {
        let store = try StoreFixture().open()
        try await store.commit(Counters.add(3))
        let inserts = await store.commitEach((1...4).map(Counters.add))
        #expect(inserts.map { (try? $0.get()) != nil } == [true, true, false, true])
        // The second of two rows with the same number.
        #expect(await store.commitEach([5, 6, 5].map(Counters.add)).map { (try? $0.get()) != nil } == [true, true, false])
        let set = { (id: Int64) in StoreCommand.change([Counters.setByID(.integer(8), .integer(id), .integer(0))]) }
        let id = try await store.commit(.find(Counters.find(.integer(1))) { .done(try $0[0].integer(0)) })
        #expect(await store.commitEach([id, -1, id].map(set)).map { (try? $0.get()) != nil } == [true, false, false])
        let null = Mutation(Counters.table, .insertOrIgnore([Counters.number, Counters.count]))
        let ignored = await store.commitEach([Value.integer(1), .null, .integer(2)].map { StoreCommand.change([null(.integer(11), $0)]) })
        #expect(ignored.map { (try? $0.get()) != nil } == [true, false, true])
        #expect(try store.read(Counters.value(11)) == 1)
    }
}
