import Core
import Delivery
import GRDB
import Storage
import StoreSQLite
import TestSupport
import Testing
import WakuCrypto

@Suite struct TransferTests {
    @Test func idsContinueAfterThoseOfTheFormerStore() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(folder: folder.path, storageKey: .random(), parts: [DeliveryStorage.part])
        let name = DeliveryStorage.outboxTable.name
        for id in [41, 7] as [Int64] {
            try store.continueIDs(after: [name: id])
            #expect(try store.lastIDs()[name] == 41)
        }
    }

    @Test(arguments: [
        ("'a', 'b'", true), ("NULL, 1", true), ("'a', NULL", true), ("'\(DeliveryStorage.outboxTable.name)', 50", false),
    ])
    func damagedIDsAreReported(row: String, isDamaged: Bool) throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore(folder: folder.path, storageKey: .random(), parts: [DeliveryStorage.part])
        let name = DeliveryStorage.outboxTable.name
        try store.continueIDs(after: [name: 41])
        try DatabaseQueue(path: DataFolder.databasePath(in: folder.path)).write { db in
            try db.execute(sql: "INSERT INTO sqlite_sequence (name, seq) VALUES (\(row))")
        }
        guard isDamaged else {
            #expect(try store.lastIDs()[name] == 50)
            return
        }
        let error = #expect(throws: StoreError.self) { try store.lastIDs() }
        #expect(error?.code == .damaged)
    }

    /// Such as the time from which an import catches up.
    @Test func propertiesThatTheOtherStoreRemovedDoNotComeBack() async throws {
        let folders = try [TemporaryFolder(), TemporaryFolder()]
        let stores = try folders.map { try SQLiteStore(folder: $0.path, storageKey: .random(), parts: [DeliveryStorage.part]) }
        try await stores[0].commit(.change([Properties.set("removed", to: [1]), Properties.set("kept", to: [1])]))
        let own = try stores[0].read(Properties.all()).map(\.name)
        _ = try await StoreTransfer(from: stores[0], to: stores[1], named: "there").run()
        try await stores[1].commit(.change([Properties.remove("removed"), Properties.set("kept", to: [2])]))
        _ = try await StoreTransfer(from: stores[1], to: stores[0], named: "here").run()
        let found = try stores[0].read(Properties.all())
        #expect(Set(found.map(\.name)) == Set(own).subtracting(["removed"]) && own.contains("storage key check"))
        #expect(found.first { $0.name == "kept" }?.value == [2])
    }

    @Test func aLookUpKeyOfTheTargetsEarlierLifeDoesNotStay() async throws {
        let (first, second) = (PrivateKey.generate(), PrivateKey.generate())
        let key = Sealer.storageKey(of: second)
        let folders = try [TemporaryFolder(), TemporaryFolder()]
        let parts = [DeliveryStorage.part]
        try SQLiteStore(folder: folders[0].path, storageKey: Sealer.storageKey(of: first), parts: parts).close()
        let locked = try DataFolder(locking: folders[0].path)
        try StorageKeyRotation.run(
            Sealer.storageKey(of: first), in: locked, parts: parts, StoreMove(from: first, to: second))
        locked.unlock()
        let stores = try folders.map { try SQLiteStore(folder: $0.path, storageKey: key, parts: parts) }
        func hash(_ store: SQLiteStore) -> [UInt8] { store.sealer.lookUpHash(of: [1], in: "test") }
        #expect(hash(stores[0]) != hash(stores[1]))
        _ = try await StoreTransfer(from: stores[1], to: stores[0], named: "there").run()
        try stores[0].close()
        let moved = try SQLiteStore(folder: folders[0].path, storageKey: key, parts: parts)
        #expect(hash(moved) == hash(stores[1]))
    }

    @Test func largeRowsAreMovedInSmallPages() async throws {
        let folders = try [TemporaryFolder(), TemporaryFolder()]
        let stores = try folders.map { try SQLiteStore(folder: $0.path, storageKey: .random(), parts: [DeliveryStorage.part]) }
        for number in 1...5 as ClosedRange<UInt8> {
            let delivery = try #require(DeliveryID(bytes: [UInt8](repeating: number, count: 32)))
            try await stores[0].commit(
                .change([
                    DeliveryStorage.enqueue(
                        delivery, for: DeviceID(ProtocolNumber(rawValue: 1), row: 1), payload: [UInt8](repeating: 0, count: 3 << 20),
                        expires: Timestamp(rawValue: 1), by: stores[0].sealer)
                ]))
        }
        var rows: [Int] = []
        let report = try await StoreTransfer(from: stores[0], to: stores[1], named: "there") { rows.append($0.rows) }.run()
        #expect(rows == [3, 5])
        #expect(report.moved[DeliveryStorage.outboxTable.name] == 5)
    }
}
