import Foundation
import GRDB
import Storage
import StoreSQLite
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@Suite("Commits and the database file")
struct CommitTests {
    let fixture: StoreFixture
    var store: SQLiteStore { fixture.store }

    init() throws {
        fixture = try StoreFixture()
    }

    @Test("Closing leaves no log")
    func emptyLog() async throws {
        try await store.put("a")
        #expect(FileManager.default.contents(atPath: fixture.path + "-wal")?.isEmpty == false)
        try store.close()
        #expect(FileManager.default.contents(atPath: fixture.path + "-wal")?.isEmpty ?? true)
    }

    @Test("Every commit is synced: WAL with synchronous=FULL")
    func durability() async throws {
        let mode = try store.pragmas()
        #expect(mode.synchronous == 2)
        #expect(mode.journal == "wal")
    }

    @Test("A failing command does not affect others, and leaves no changes")
    func isolation() async throws {
        struct Refused: Error {}
        let names = (0..<8).map(String.init)
        let results = await store.commitEach(
            names.map { name in
                Records.put(name, store.sealer).then { () -> StoreCommand<String> in
                    if name == "5" { throw Refused() }
                    return .done(name)
                }
            })
        for (name, result) in zip(names, results) {
            #expect(try (store.version(of: name) != nil) == (name != "5"))
            #expect((try? result.get()) == (name == "5" ? nil : name))
        }
        // An unforeseen error is reported by the name of its type only, since its text may quote values.
        let error = #expect(throws: StoreError.self) { try results[5].get() }
        #expect(error?.message == "a change failed: Refused")
    }

    /// The node's maintenance must go on under load, or no alarm tells of it.
    @Test("Maintenance has its turn while each commit is followed by another")
    func turns() async throws {
        let chain = CommitChain()
        chain.submitNext(to: store)
        await store.maintain()
        let left = chain.end()
        try await store.put("b")
        #expect(left > 0)
    }

    @Test("A second daemon can't lock the folder")
    func lock() throws {
        let first = try DataFolder(locking: fixture.folder.path)
        let error = #expect(throws: StoreError.self) { try DataFolder(locking: fixture.folder.path) }
        #expect(error?.code == .locked)
        withExtendedLifetime(first) {}
    }

    @Test("Another identity is refused with a clear error")
    func otherIdentity() throws {
        let error = #expect(throws: StoreError.self) {
            try SQLiteStore(folder: fixture.folder.path, storageKey: Sealer.storageKey(of: .generate()), parts: [Records.part])
        }
        #expect(error?.code == .otherIdentity)
    }

    @Test("A database of a later version is refused", arguments: ["99 from the future", "records 2"])
    func newer(migration: String) throws {
        try store.close()
        let queue = try DatabaseQueue(path: fixture.path)
        try queue.write { try $0.execute(sql: "INSERT INTO grdb_migrations (identifier) VALUES (?)", arguments: [migration]) }
        try queue.close()
        let error = #expect(throws: StoreError.self) { try fixture.reopened() }
        #expect(error?.code == .newer)
        let inspection = #expect(throws: StoreError.self) {
            try StoreInspection(of: fixture.path, storageKey: nil, parts: [Records.part])
        }
        #expect(inspection?.code == .newer)
        let opening = #expect(throws: StoreError.self) {
            try SQLiteStore(existing: fixture.folder.path, storageKey: nil, parts: [Records.part])
        }
        #expect(opening?.code == .newer)
    }

    @Test("A file that is not a database is refused")
    func damaged() throws {
        try store.close()
        for file in [fixture.path, fixture.path + "-wal", fixture.path + "-shm"] { try? FileManager.default.removeItem(atPath: file) }
        try Data(repeating: 0x5A, count: 8192).write(to: URL(fileURLWithPath: fixture.path))
        let error = #expect(throws: StoreError.self) { try fixture.reopened() }
        #expect(error?.code == .damaged)
    }

    @Test("Opening a missing database fails")
    func missing() throws {
        let empty = try TemporaryFolder()
        let error = #expect(throws: StoreError.self) { try SQLiteStore(existing: empty.path, storageKey: nil, parts: [Records.part]) }
        #expect(error?.code == .missing)
    }

    @Test("A database that lacks a part's tables is not opened beside a daemon")
    func incomplete() throws {
        let error = #expect(throws: StoreError.self) {
            try SQLiteStore(
                existing: fixture.folder.path, storageKey: nil,
                parts: [Records.part, StorePart("later", tables: [Table("later", columns: [])])])
        }
        #expect(error?.message.contains("older version") == true)
    }

    @Test("Another process sees what was committed, and can change it, while the daemon runs")
    func besides() async throws {
        try await store.put("phone")
        let other = try SQLiteStore(existing: fixture.folder.path, storageKey: nil, parts: [Records.part])
        #expect(try other.read(Records.recordCount()) == 1)
        try await other.commit(Records.put("phone", version: 2, content: nil, other.sealer))
        #expect(try store.version(of: "phone") == 2)
    }

    @Test("The files contain no plaintext, and other users may not read them")
    func sealed() async throws {
        let token = "a-token-that-must-not-be-found"
        try await store.put("phone", content: Array(token.utf8))
        for file in try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path) {
            let path = fixture.folder.path + "/" + file
            let content = try #require(FileManager.default.contents(atPath: path))
            #expect(content.range(of: Data(token.utf8)) == nil, "\(file) holds the token")
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(try #require(mode) & 0o077 == 0, "\(file) can be read by others")
        }
    }

    @Test("Texts may contain NUL")
    func embeddedNul() async throws {
        let name = "a\0b"
        try await store.commit(.change([Properties.set(name, to: [1])]))
        #expect(try store.read(Properties.property(name)) == [1])
        #expect(try store.read(Properties.property("a")) == nil)
    }
}

/// Commits one after the other, each submitted by the completion of the one before.
private final class CommitChain: Sendable {
    private let left = Mutex(5_000)

    func submitNext(to store: SQLiteStore) {
        let isOver = left.withLock { left in
            left -= 1
            return left <= 0
        }
        if !isOver { store.submit([Records.put("a", store.sealer)]) { _ in self.submitNext(to: store) } }
    }

    /// - Returns: the number of commits that were left; 0 or less if none was.
    func end() -> Int {
        left.withLock { left in
            defer { left = 0 }
            return left
        }
    }
}
