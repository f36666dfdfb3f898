import Foundation
import GRDB
import Storage
import TestSupport
import Testing

@testable import StoreSQLite

/// Files of the database that are deleted, moved or replaced while it is open.
@Suite("Lost files of the database", .timeLimit(.minutes(5)))
struct LostFilesTests {
    let fixture: StoreFixture
    var store: SQLiteStore { fixture.store }
    var copy: String { fixture.path + ".rescued" }

    init() throws {
        fixture = try StoreFixture()
    }

    private func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    private func expectRefusal(_ text: String, _ location: SourceLocation = #_sourceLocation) async {
        let error = await #expect(throws: StoreError.self, sourceLocation: location) { try await store.put("refused") }
        let unread = #expect(throws: StoreError.self, sourceLocation: location) { try store.version(of: "kept") }
        for message in [error?.message, unread?.message, store.failure] {
            #expect(message?.contains(text) == true, "\(message ?? "nothing")", sourceLocation: location)
        }
    }

    /// Restores the copy as `admin restore` does.
    private func restored() throws -> SQLiteStore {
        let folder = try DataFolder(locking: fixture.folder.path)
        defer { folder.unlock() }
        #expect(try StoreBackup.restore(copy, into: folder, storageKey: fixture.storageKey, parts: [Records.part]).isWhole)
        return try fixture.reopened()
    }

    @Test("A deleted database accepts no commits, and is restored from the copy of its rows, without which no new one is begun")
    func deleted() async throws {
        try await store.put("kept", version: 7)
        await store.maintain()
        unlink(fixture.path)
        try await store.put("after", version: 8)
        await store.maintain()
        await expectRefusal("stop the daemon and restore the copy of its rows: waku-push admin restore \(copy)")
        await store.maintain()
        try store.close()
        let error = #expect(throws: StoreError.self) { try fixture.reopened() }
        #expect(error?.code == .missing)
        #expect(error?.message.contains("waku-push admin restore \(copy)") == true)
        // As when the daemon was killed while it copied.
        rename(copy, copy + ".partial")
        #expect(throws: StoreError.self) { try fixture.reopened() }
        rename(copy + ".partial", copy)
        #expect(!exists(fixture.path))
        let reopened = try restored()
        #expect(try reopened.version(of: "kept") == 7)
        #expect(try reopened.version(of: "after") == 8)
        #expect(try reopened.version(of: "refused") == nil)
    }

    @Test("A stop right after the deletion copies the rows, too")
    func stopped() async throws {
        try await store.put("kept", version: 7)
        unlink(fixture.path)
        try store.close()
        #expect(try restored().version(of: "kept") == 7)
    }

    @Test("A second copy does not replace the first, which may be the only one of its rows")
    func again() async throws {
        try await store.put("kept", version: 7)
        unlink(fixture.path)
        try store.close()
        let second = try restored()
        try await second.put("second")
        unlink(fixture.path)
        try second.close()
        #expect(exists(copy + ".earlier"))
        #expect(try restored().version(of: "second") == 1)
    }

    @Test("A replaced database gets no part of the log of the former one")
    func replaced() async throws {
        let other = try StoreFixture()
        try await other.store.put("other", version: 3)
        try other.store.close()
        try await store.put("kept", version: 7)
        #expect(rename(other.path, fixture.path) == 0)
        await store.maintain()
        await expectRefusal("was deleted, moved or replaced under the daemon")
        // As after a kill: the log is as the maintenance left it.
        for suffix in ["", "-wal"] {
            try? FileManager.default.copyItem(atPath: fixture.path + suffix, toPath: other.path + suffix)
        }
        let reopened = try SQLiteStore(folder: other.folder.path, storageKey: other.storageKey, parts: [Records.part])
        #expect(try reopened.version(of: "other") == 3)
        #expect(try reopened.version(of: "kept") == nil)
        try store.close()
        #expect(try restored().version(of: "kept") == 7)
    }

    @Test("A database that was moved and comes back is used again")
    func moved() async throws {
        try await store.put("kept", version: 7)
        let elsewhere = fixture.path + ".moved"
        rename(fixture.path, elsewhere)
        await store.maintain()
        await expectRefusal("move it back")
        #expect(exists(copy))
        rename(elsewhere, fixture.path)
        await store.maintain()
        try await store.put("again")
        #expect(store.failure == nil)
        #expect(!exists(copy))
        try store.close()
        #expect(try fixture.reopened().version(of: "kept") == 7)
    }

    @Test("The rows of a folder that was moved as a whole can't be copied: it comes back, or the open file is all that has them")
    func movedFolder() async throws {
        try await store.put("kept", version: 7)
        let elsewhere = fixture.folder.path + ".moved"
        rename(fixture.folder.path, elsewhere)
        await store.maintain()
        await expectRefusal("before you stop the daemon; its rows are lost otherwise")
        rename(elsewhere, fixture.folder.path)
        await store.maintain()
        try await store.put("again")
        #expect(store.failure == nil)
    }

    @Test("A lost log, or its index, loses no row at a restart", arguments: ["-wal", "-shm"])
    func lostLog(suffix: String) async throws {
        try await store.put("kept", version: 7)
        unlink(fixture.path + suffix)
        await store.maintain()
        await expectRefusal("\(suffix) was deleted, moved or replaced under the daemon, which does not use it any more: restart it")
        #expect(!exists(copy))
        try store.close()
        #expect(try fixture.reopened().version(of: "kept") == 7)
    }

    @Test("A data folder behind a symbolic link, which may change, has its files in place")
    func symbolicLink() async throws {
        try store.close()
        let link = fixture.folder.path + ".link"
        defer { unlink(link) }
        symlink(fixture.folder.path, link)
        let linked = try SQLiteStore(folder: link, storageKey: fixture.storageKey, parts: [Records.part])
        try await linked.put("kept")
        await linked.maintain()
        #expect(linked.failure == nil)
        let moved = fixture.folder.path + ".moved"
        rename(fixture.folder.path, moved)
        defer { rename(moved, fixture.folder.path) }
        unlink(link)
        symlink(moved, link)
        await linked.maintain()
        try await linked.put("kept", version: 2)
        #expect(linked.failure == nil)
    }
}
