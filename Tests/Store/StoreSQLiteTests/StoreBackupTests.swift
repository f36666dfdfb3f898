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
}
