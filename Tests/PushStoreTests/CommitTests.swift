import Foundation
import GRDB
import PushStore
import StatusProtocol
import Synchronization
import TestSupport
import Testing
import Waku
import WakuCrypto

@Suite("Commits and the database file")
struct CommitTests {
    let fixture: StoreFixture
    var store: Store { fixture.store }

    init() throws {
        fixture = try StoreFixture()
    }

    private struct Refused: Error {}

    @Test("Every commit is synced: WAL with synchronous=FULL")
    func durability() async throws {
        let mode = try await store.commit { transaction in try transaction.pragmas() }
        #expect(mode.synchronous == 2)
        #expect(mode.journal == "wal")
    }

    @Test("What one does wrong takes nothing with it, and nothing of it stays")
    func isolation() async throws {
        let keys = (0..<8).map { StoreFixture.key(String($0)) }
        let results = await store.commitEach(Array(keys.enumerated())) { transaction, item in
            let (index, key) = item
            let registration = StoreFixture.registration(key)
            try transaction.store(registration, bytes: registration.encoded(), as: key, at: Timestamp(rawValue: 1))
            if index == 5 { throw Refused() }
            return index
        }
        for (index, result) in results.enumerated() {
            #expect(try (store.read { try $0.state(of: keys[index]) } != nil) == (index != 5))
            #expect((try? result.get()) == (index == 5 ? nil : index))
        }
    }

    @Test("Items of one call are done in order")
    func order() async throws {
        let key = StoreFixture.key()
        let results = await store.commitEach(Array(1...50)) { transaction, version in
            let before = try transaction.state(of: key)?.version ?? 0
            let registration = StoreFixture.registration(key, version: UInt64(version))
            try transaction.store(registration, bytes: registration.encoded(), as: key, at: Timestamp(rawValue: 1))
            return before
        }
        #expect(try results.map { try $0.get() } == Array(0..<50))
    }

    @Test("What waits for the writer does not return while the writer hangs")
    func settling() async throws {
        await store.settle()
        let (hangs, goesOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        store.enqueue { _ in
            hangs.signal()
            goesOn.wait()
        }
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                hangs.wait()
                continuation.resume()
            }
        }
        let isSettled = Mutex(false)
        let settled = Task {
            await store.settle()
            isSettled.withLock { $0 = true }
        }
        for _ in 0..<10_000 { await Task.yield() }
        #expect(isSettled.withLock { !$0 })
        goesOn.signal()
        await settled.value
    }

    @Test("Many at once are all kept")
    func concurrency() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<200 { group.addTask { try await store.register(StoreFixture.key(String(index))) } }
            try await group.waitForAll()
        }
        #expect(try store.read { try $0.statistics() }.apn == 200)
    }

    @Test("A second daemon is kept off the folder")
    func lock() throws {
        let first = try DataFolder(locking: fixture.folder.path)
        let error = #expect(throws: StoreError.self) { try DataFolder(locking: fixture.folder.path) }
        #expect(error?.code == .locked)
        withExtendedLifetime(first) {}
    }

    @Test("Another identity is refused, and told so")
    func otherIdentity() throws {
        let error = #expect(throws: StoreError.self) {
            try Store(folder: fixture.folder.path, storageKey: Store.storageKey(of: .generate()))
        }
        #expect(error?.code == .otherIdentity)
    }

    @Test("A database of a later version is refused")
    func newer() throws {
        try store.close()
        let queue = try DatabaseQueue(path: DataFolder.databasePath(in: fixture.folder.path))
        try queue.write { try $0.execute(sql: "INSERT INTO grdb_migrations (identifier) VALUES ('99 from the future')") }
        try queue.close()
        let error = #expect(throws: StoreError.self) { try fixture.reopened() }
        #expect(error?.code == .newer)
    }

    @Test("What is no database is refused")
    func damaged() throws {
        try store.close()
        let path = DataFolder.databasePath(in: fixture.folder.path)
        for file in [path, path + "-wal", path + "-shm"] { try? FileManager.default.removeItem(atPath: file) }
        try Data(repeating: 0x5A, count: 8192).write(to: URL(fileURLWithPath: path))
        let error = #expect(throws: StoreError.self) { try fixture.reopened() }
        #expect(error?.code == .damaged)
    }

    @Test("Without a database there is nothing to look into")
    func missing() throws {
        let empty = try TemporaryFolder()
        let error = #expect(throws: StoreError.self) { try Store(existing: empty.path, storageKey: nil) }
        #expect(error?.code == .missing)
    }

    @Test("Another process sees what was committed, and can unregister, while the daemon runs")
    func besides() async throws {
        let key = StoreFixture.key()
        try await store.register(key)
        let other = try Store(existing: fixture.folder.path, storageKey: nil)
        #expect(try other.read { try $0.summaries(limit: 10) }.map(\.key) == [key])
        try await other.commit { try $0.unregister(key, version: 1, at: Timestamp(rawValue: 2)) }
        #expect(try store.read { try $0.state(of: key) } == .tombstone(version: 1))
    }

    @Test("A registrant is found by the beginning of its hash")
    func prefixes() async throws {
        let keys = (0..<20).map { StoreFixture.key(String($0)) }
        for key in keys { try await store.register(key) }
        for key in keys {
            #expect(try store.read { try $0.keyHashes(prefix: String(key.keyHash.hex.prefix(32)), limit: 2) } == [key.keyHash])
        }
        #expect(try store.read { try $0.keyHashes(prefix: "", limit: 50) }.count == 20)
    }
}
