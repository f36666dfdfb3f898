import PushStore
import TestSupport
import WakuCrypto

/// A folder whose disk can be made to fail, and stores in it, one after the other.
struct FaultyStoreFixture {
    let folder: TemporaryFolder
    let faults: StoreFaults
    let storageKey = Store.storageKey(of: .generate())

    init() throws {
        folder = try TemporaryFolder()
        faults = StoreFaults(in: folder.path)
    }

    func open() throws -> Store {
        try Store(folder: folder.path, storageKey: storageKey)
    }
}
