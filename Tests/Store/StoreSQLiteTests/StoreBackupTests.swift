import Storage
import TestSupport
import Testing
import WakuCrypto

@testable import StoreSQLite

@Suite struct StoreBackupTests {
    @Test func missingBackupIsNamedWithTheRemedy() throws {
        let fixture = try StoreFixture()
        let target = try DataFolder(locking: fixture.folder.path + "/target")
        let backup = fixture.folder.path + "/backup"
        let error = #expect(throws: StoreError.self) {
            try StoreBackup.restore(backup, into: target, storageKey: fixture.storageKey, parts: [Records.part])
        }
        #expect(error?.code == .missing)
        #expect(error?.message == "backup \(backup) is missing: give the file that admin backup made")
    }

    @Test func aBackupHoldsTheRowsOfItsTimeAndIsNeverReplaced() async throws {
        let fixture = try StoreFixture()
        try await fixture.store.put("kept", version: 7)
        let backup = fixture.folder.path + "/backup"
        #expect(try StoreBackup.write(fixture.store, to: backup, storageKey: fixture.storageKey).isWhole)
        try await fixture.store.put("kept", version: 8)
        let error = #expect(throws: StoreError.self) {
            try StoreBackup.write(fixture.store, to: backup, storageKey: fixture.storageKey)
        }
        #expect(error?.code == .cannotCreate)
        #expect(error?.message == "backup \(backup) exists already: choose another name")
        let target = try DataFolder(locking: fixture.folder.path + "/target")
        #expect(try StoreBackup.restore(backup, into: target, storageKey: fixture.storageKey, parts: [Records.part]).isWhole)
        let store = try SQLiteStore(folder: target.path, storageKey: fixture.storageKey, parts: [Records.part])
        #expect(try store.version(of: "kept") == 7)
    }
}
