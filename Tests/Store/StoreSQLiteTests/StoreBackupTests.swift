import Foundation
import GRDB
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

    @Test("A copy whose log can't be merged, because the disk is full, replaces nothing")
    func fullDisk() async throws {
        let fixture = try StoreFixture()
        try await fixture.store.put("kept", version: 7)
        // Of a running store: its log is not empty.
        let backup = fixture.folder.path + "/copy"
        for suffix in ["", "-wal"] { try FileManager.default.copyItem(atPath: fixture.path + suffix, toPath: backup + suffix) }
        let target = try DataFolder(locking: fixture.folder.path + "/target")
        func restore() throws {
            _ = try StoreBackup.restore(backup, into: target, storageKey: fixture.storageKey, parts: [Records.part])
        }
        let faults = StoreFaults(in: target.path)
        faults.add(.code(ResultCode.SQLITE_FULL.rawValue), to: .write, of: .database)
        let error = #expect(throws: StoreError.self) { try restore() }
        #expect(error?.code == .full)
        #expect(!FileManager.default.fileExists(atPath: DataFolder.databasePath(in: target.path)))
        faults.clear()
        try restore()
        let store = try SQLiteStore(folder: target.path, storageKey: fixture.storageKey, parts: [Records.part])
        #expect(try store.version(of: "kept") == 7)
    }

    /// Killed after the first step, the database has both names; after the second one it is the backup's copy, and the previous one has an interim name.
    @Test(arguments: [false, true]) func aRestoreThatWasKilledIsRepeated(hasReplaced: Bool) throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/database"
        for (suffix, text) in [("", "previous"), (".restoring", "new"), (".replaced", "earlier")] {
            try text.write(toFile: path + suffix, atomically: false, encoding: .utf8)
        }
        #expect(link(path, path + ".replaced.new") == 0)
        if hasReplaced {
            unlink(path)
            try "new".write(toFile: path, atomically: false, encoding: .utf8)
        }
        try StoreBackup.replace(path, by: path + ".restoring")
        let names = ["", ".replaced"] + (hasReplaced ? [".replaced.earlier"] : [])
        let contents = try names.map { try String(contentsOfFile: path + $0, encoding: .utf8) }
        #expect(contents == (hasReplaced ? ["new", "new", "previous"] : ["new", "previous"]))
        #expect(access(path + ".replaced.new", F_OK) != 0)
    }

    /// Replaces a database that can't have a second name by a hard link.
    ///
    /// - Returns: the contents of the database, and of the previous one that is kept.
    private func replace(failing code: Int32) throws -> [String] {
        let folder = try TemporaryFolder()
        let path = folder.path + "/database"
        for (suffix, text) in [("", "previous"), (".replaced", "of an earlier restore"), (".restoring", "new")] {
            try text.write(toFile: path + suffix, atomically: false, encoding: .utf8)
        }
        try? StoreBackup.replace(path, by: path + ".restoring") { _, _ in
            errno = code
            return -1
        }
        #expect(access(path + ".replaced.new", F_OK) != 0)
        return try ["", ".replaced"].map { try String(contentsOfFile: path + $0, encoding: .utf8) }
    }

    @Test func thePreviousDatabaseIsKeptWithoutHardLinks() throws {
        #expect(try replace(failing: EPERM) == ["new", "previous"])
    }

    @Test func aRestoreThatFailsLeavesThePreviousDatabaseOfAnEarlierOne() throws {
        #expect(try replace(failing: EIO) == ["previous", "of an earlier restore"])
    }

    @Test func oneOfSeveralProcessesWritesABackup() async throws {
        let fixture = try StoreFixture()
        let backup = fixture.folder.path + "/backup"
        // The lock of another process, and what a killed one leaves.
        let lock = open(backup + ".partial.lock", O_RDWR | O_CREAT, 0o600)
        #expect(flock(lock, LOCK_EX | LOCK_NB) == 0)
        try "half a copy".write(toFile: backup + ".partial", atomically: true, encoding: .utf8)
        let error = #expect(throws: StoreError.self) {
            try StoreBackup.write(fixture.store, to: backup, storageKey: fixture.storageKey)
        }
        #expect(error?.code == .locked)
        #expect(error?.message == "backup \(backup) is being written by another process: wait for it, or choose another name")
        #expect(FileManager.default.fileExists(atPath: backup + ".partial"))
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
            .compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0) }
        #expect(descriptors.count { $0.hasSuffix(URL(fileURLWithPath: backup).path + ".partial.lock") } == 1)
        close(lock)
        #expect(try StoreBackup.write(fixture.store, to: backup, storageKey: fixture.storageKey).isWhole)
        for suffix in [".partial", ".partial.lock"] { #expect(!FileManager.default.fileExists(atPath: backup + suffix)) }
    }

    @Test func backupsOfOneNameDoNotDisturbEachOther() async throws {
        let fixture = try StoreFixture()
        try await fixture.store.put("kept", version: 7)
        let (store, key, backup) = (fixture.store, fixture.storageKey, fixture.folder.path + "/backup")
        let failures: [StoreError.Code?] = await withTaskGroup(of: StoreError.Code?.self) { group in
            for _ in 0..<6 {
                group.addTask {
                    do throws(StoreError) {
                        _ = try StoreBackup.write(store, to: backup, storageKey: key)
                        return nil
                    } catch {
                        return error.code
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(failures.count { $0 == nil } == 1)
        #expect(failures.allSatisfy { $0 == nil || $0 == .locked || $0 == .cannotCreate })
        #expect(try StoreInspection(of: backup, storageKey: key, parts: [Records.part]).isWhole)
    }
}
