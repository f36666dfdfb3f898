import Storage
import StoreSQLite
import TestSupport
import Testing
import WakuCrypto

/// SQLite executes commands one after the other; PostgreSQL reads for many at once.
@Suite("PostgreSQL and SQLite", .timeLimit(.minutes(5)))
struct EngineEquivalenceTests {
    private static let numbers: Range<Int64> = 0..<12

    /// A random command, whose outcome contains the rows that it read.
    private static func command(_ generator: inout SeededGenerator) -> StoreCommand<[Int64]> {
        func random(_ range: Range<Int64> = numbers) -> Int64 { Int64.random(in: range, using: &generator) }
        let (number, other, owner) = (random(), random(), random(0..<3))
        switch random(0..<11) {
        case 0: return .change([Counters.insert(.integer(number), .integer(0), .integer(owner))], [0])
        case 1: return Counters.increment(number).map { [$0] }
        case 2: return Counters.increment(number).then { first in Counters.increment(other).map { [first, $0] } }
        case 3:
            return .find(Counters.countOfOwner(.integer(owner))) { rows in
                let count = try rows[0].integer(0)
                return .change([Counters.insertOrIgnore(.integer(number), .integer(count), .integer(owner))], [count])
            }
        case 4: return .change([Counters.moveAll(.integer(owner), .integer((owner + 1) % 3))], [4])
        case 5: return .change([Counters.removeByNumber(.integer(number))], [5])
        case 6:
            return .find(Counters.find(.integer(number))) { rows in
                .change(try rows.map { Counters.removeByID(.integer(try $0.integer(0))) }, [Int64(rows.count)])
            }
        case 7:
            return .find(Counters.countAll()) { rows in
                let count = try rows[0].integer(0)
                return .change([Counters.upsert(.integer(number), .integer(count))], [count])
            }
        case 8: return .change([Counters.removeLow(.integer(owner - 1)), Counters.setOwner(.null, .integer(other))], [8])
        case 9:
            // The second read depends on the first.
            return .find(Counters.findCount(.integer(number))) { rows in
                let next = try rows.first?.integer(0) ?? 0
                return .find(Counters.findCount(.integer(next % 12))) { .done([next, try $0.first?.integer(0) ?? -1]) }
            }
        default: return Counters.value(number).map { [$0 ?? -1] }
        }
    }

    @Test("Both engines give the same outcomes and rows for random commands", arguments: 1...8 as ClosedRange<UInt64>)
    func equivalence(seed: UInt64) async throws {
        let (fixture, folder) = (try StoreFixture(), try TemporaryFolder())
        let sqlite = try SQLiteStore(folder: folder.path, storageKey: fixture.storageKey, parts: [Counters.part])
        let postgreSQL = try fixture.open()
        var generator = SeededGenerator(seed: seed)
        for round in 0..<20 {
            let size = Int.random(in: 1...(round == 19 ? 300 : 40), using: &generator)
            let commands = (0..<size).map { _ in Self.command(&generator) }
            let (expected, found) = (await sqlite.commitEach(commands), await postgreSQL.commitEach(commands))
            for (index, (expected, found)) in zip(expected, found).enumerated() {
                #expect((try? expected.get()) == (try? found.get()), "seed \(seed), round \(round), command \(index)")
            }
            #expect(try sqlite.read(Counters.all()) == postgreSQL.read(Counters.all()), "seed \(seed), round \(round)")
        }
    }
}
