import Storage
import TestSupport
import Testing
import WakuCrypto

@testable import StorePostgreSQL

@Suite("Rotation of the storage key in PostgreSQL", .timeLimit(.minutes(5)))
struct KeyRotationTests {
    private func contents(_ store: PostgreSQLStore) throws -> [[UInt8]] {
        try store.read(.find(Counters.sealedRows()) { .done(try $0.map { try $0.bytes(1) }) })
    }

    @Test("All rows are re-encrypted, and open with the same identity")
    func rotation() async throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        try await store.commit(
            .change(
                (0..<1200 as Range<Int64>).map { number in
                    Counters.insertSealed(
                        .integer(number), .integer(0), store.sealer.seal([7], in: Counters.table, boundTo: [.integer(number)]))
                }))
        try await store.commit(Counters.add(5000))
        let before = try contents(store)
        try store.close()
        for _ in 0..<2 {
            #expect(try PostgreSQLKeyRotation.run(fixture.storageKey, at: fixture.address(), parts: [Counters.part]) == 1200)
        }
        let after = try fixture.open()
        #expect(Set(try contents(after)).isDisjoint(with: before))
        let inspection = try after.inspect(limit: nil)
        #expect(inspection.rows == ["counters": StoreInspection.Rows(count: 1200)] && !inspection.isRotationUnfinished)
    }

    @Test("A row that can't be opened leaves everything as it was")
    func damage() async throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        let sealed = store.sealer.seal([7], in: Counters.table, boundTo: [.integer(1)])
        try await store.commit(
            .change([
                Counters.insertSealed(.integer(1), .integer(0), sealed),
                Counters.insertSealed(.integer(2), .integer(0), .bytes([1, 2, 3])),
            ]))
        let before = try contents(store)
        let error = #expect(throws: StoreError.self) {
            try PostgreSQLKeyRotation.run(fixture.storageKey, at: fixture.address(), parts: [Counters.part])
        }
        #expect(error?.code == .damaged)
        #expect(try contents(fixture.open()) == before)
    }

    @Test("A database with rows of a part that the program lacks is refused: they could not be opened afterwards")
    func unknownPart() throws {
        let fixture = try StoreFixture()
        let added = StorePart("added", tables: [Table("added", columns: [Column("value", .integer)])])
        try PostgreSQLStore(fixture.address(), storageKey: fixture.storageKey, parts: [Counters.part, added]).close()
        let error = #expect(throws: StoreError.self) {
            try PostgreSQLKeyRotation.run(fixture.storageKey, at: fixture.address(), parts: [Counters.part])
        }
        #expect(error?.code == .unsuitable && error?.message.contains("(added)") == true)
        #expect(try PostgreSQLKeyRotation.run(fixture.storageKey, at: fixture.address(), parts: [Counters.part, added]) == 0)
    }

    @Test("A command that had opened the database before can't write under the former key")
    func writerBeside() async throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        #expect(try await store.commit(StoreTransfer.obstacle()) == nil)
        #expect(try PostgreSQLKeyRotation.run(fixture.storageKey, at: fixture.address(), parts: [Counters.part]) == 0)
        let error = await #expect(throws: StoreError.self) { try await store.commit(Counters.add(1)) }
        #expect(error?.code == .locked)
    }

    @Test("A running daemon's database is refused")
    func running() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open(access: .exclusive)
        let error = #expect(throws: StoreError.self) {
            try PostgreSQLKeyRotation.run(fixture.storageKey, at: fixture.address(), parts: [Counters.part])
        }
        #expect(error?.code == .locked)
        try store.close()
    }
}
