import Foundation
import GRDB
import Storage
import StoreSQLite
import TestSupport
import Testing
import WakuCrypto

@Suite("Rotation of the storage key", .timeLimit(.minutes(5)))
struct StorageKeyRotationTests {
    /// A closed store with records, one of them without content, and memos.
    private func filled() async throws -> (StoreFixture, [String]) {
        let fixture = try StoreFixture()
        let names = (0..<1200).map { "record-\($0)" }
        let (store, sealer) = (fixture.store, fixture.store.sealer)
        for result in await store.commitEach(names.map { Records.put($0, content: Array("content of \($0)".utf8), sealer) }) {
            try result.get()
        }
        try await store.put(names[0], version: 2, content: nil)
        for _ in 0..<2 { try await store.commit(Records.addMemo(sealer)) }
        try store.close()
        return (fixture, names)
    }

    private func sealed(_ path: String) throws -> [Data] {
        try DatabaseQueue(path: path).read { db in
            try Data.fetchAll(
                db,
                sql: """
                    SELECT sealed FROM record WHERE sealed IS NOT NULL UNION ALL SELECT sealed FROM memo
                    UNION ALL SELECT value FROM property WHERE name LIKE 'storage key%'
                    """)
        }
    }

    /// Whether a file contains the first 8 bytes, which are random, of any of these.
    private func disclosesAny(of secrets: [Data], in path: String) throws -> Bool {
        guard FileManager.default.fileExists(atPath: path) else { return false }
        let beginnings = Set(secrets.map { $0.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } })
        var window: UInt64 = 0
        for byte in [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) {
            window = window << 8 | UInt64(byte)
            if beginnings.contains(window) { return true }
        }
        return false
    }

    @Test func fewLargeRowsAreInMemoryAtOnce() async throws {
        let fixture = try StoreFixture()
        let (store, sealer, content) = (fixture.store, fixture.store.sealer, [UInt8](repeating: 1, count: 2 << 20))
        for number in 0..<12 { try await store.commit(Records.put("record-\(number)", content: content, sealer)) }
        try await store.commit(Records.put("record-12", content: nil, sealer))
        let rows = try #require(SealedRows(Records.table))
        var (largest, changed) = (0, 0)
        let count = try rows.reseal(from: sealer, to: sealer) { read in
            let found = try store.read(StoreCommand.find(read) { .done($0) })
            let byteCount = found.lazy.flatMap(\.values).reduce(0) { if case .bytes(let bytes) = $1 { $0 + bytes.count } else { $0 } }
            largest = max(largest, byteCount)
            return found
        } changing: { changes in
            changed += changes.count
        }
        #expect(count == 12 && changed == 12)
        #expect(largest < 11 << 20)
    }

    @Test func allRowsAreResealedAndNothingElseChanges() async throws {
        let (fixture, names) = try await filled()
        let folder = try DataFolder(locking: fixture.folder.path)
        for _ in 0..<2 {
            let before = try sealed(fixture.path)
            #expect(try disclosesAny(of: before, in: fixture.path))
            #expect(try StorageKeyRotation.run(fixture.storageKey, in: folder, parts: [Records.part]) == 1199)
            // Neither contents under the old key nor the salt of the old key are in any file.
            for suffix in ["", "-wal"] { #expect(try !disclosesAny(of: before, in: fixture.path + suffix)) }
            let after = try sealed(fixture.path)
            #expect(Set(before).isDisjoint(with: after))
        }
        let store = try fixture.reopened()
        for name in names.dropFirst() {
            let record = try store.read(Records.content(of: name, store.sealer))
            #expect(record?.version == 1 && record?.content == Array("content of \(name)".utf8))
        }
        let empty = try #require(try store.read(Records.content(of: names[0], store.sealer)))
        #expect(empty.version == 2 && empty.content == nil)
        #expect(try store.read(Records.recordCount()) == 1200)
        try store.close()
    }

    @Test("Rows of caches are deleted, and recomputed under the new key")
    func cachesAreDeleted() async throws {
        let (fixture, _) = try await filled()
        #expect(try fixture.reopened().read(Records.memos()).count == 2)
        let folder = try DataFolder(locking: fixture.folder.path)
        try StorageKeyRotation.run(fixture.storageKey, in: folder, parts: [Records.part])
        #expect(try fixture.reopened().read(Records.memos()).isEmpty)
    }

    @Test func rowsWithTheHighestIDAreResealed() async throws {
        let (fixture, names) = try await filled()
        let database = try DatabaseQueue(path: fixture.path)
        try await database.write { try $0.execute(sql: "UPDATE record SET id = ? WHERE id = 600", arguments: [Int64.max]) }
        try database.close()
        let folder = try DataFolder(locking: fixture.folder.path)
        #expect(try StorageKeyRotation.run(fixture.storageKey, in: folder, parts: [Records.part]) == 1199)
        #expect(try fixture.reopened().version(of: names[599]) == 1)
    }

    @Test func aRowThatCannotBeOpenedStopsIt() async throws {
        let (fixture, _) = try await filled()
        let database = try DatabaseQueue(path: fixture.path)
        try await database.write { try $0.execute(sql: "UPDATE record SET version = 99 WHERE id = 600") }
        try database.close()
        let before = try sealed(fixture.path)
        let folder = try DataFolder(locking: fixture.folder.path)
        let error = #expect(throws: StoreError.self) {
            try StorageKeyRotation.run(fixture.storageKey, in: folder, parts: [Records.part])
        }
        #expect(error?.code == .damaged)
        #expect(try sealed(fixture.path) == before)
    }

    @Test("A database with rows of a part that the program lacks is refused: they could not be opened afterwards")
    func unknownPart() async throws {
        let (fixture, _) = try await filled()
        let added = StorePart("added", tables: [Table("added", columns: [Column("value", .integer)])])
        try SQLiteStore(folder: fixture.folder.path, storageKey: fixture.storageKey, parts: [Records.part, added]).close()
        let before = try sealed(fixture.path)
        let folder = try DataFolder(locking: fixture.folder.path)
        let error = #expect(throws: StoreError.self) {
            try StorageKeyRotation.run(fixture.storageKey, in: folder, parts: [Records.part])
        }
        #expect(error?.code == .unsuitable && error?.message.contains("(added)") == true)
        #expect(try sealed(fixture.path) == before)
        #expect(try StorageKeyRotation.run(fixture.storageKey, in: folder, parts: [Records.part, added]) == 1199)
    }

    @Test func anotherIdentity() async throws {
        let (fixture, _) = try await filled()
        let folder = try DataFolder(locking: fixture.folder.path)
        let other = SymmetricKey.random()
        #expect(throws: StoreError.self) { try StorageKeyRotation.run(other, in: folder, parts: [Records.part]) }
        try StorageKeyRotation.run(fixture.storageKey, in: folder, parts: [Records.part])
        let error = #expect(throws: StoreError.self) {
            try SQLiteStore(folder: fixture.folder.path, storageKey: other, parts: [Records.part])
        }
        #expect(error?.code == .otherIdentity)
    }
}
