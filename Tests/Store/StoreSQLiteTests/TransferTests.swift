import Delivery
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
}
