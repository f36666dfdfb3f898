import Foundation
import GRDB
package import Storage
package import WakuCrypto

/// Writes and restores backups of a database.
package enum StoreBackup {
    /// Copies all committed rows into one file of mode 0600, while a daemon runs. Deleted contents are not in it.
    ///
    /// - Parameter storageKey: nil to leave sealed rows unopened.
    /// - Returns: the inspection of the copy.
    /// - Throws: ``StoreError``, and then there is no file; `cannotCreate` when the file exists or can't be created, `locked` while another process
    ///   writes it
    package static func write(_ store: SQLiteStore, to path: String, storageKey: SymmetricKey?) throws(StoreError) -> StoreInspection {
        let file = try UnfinishedFile("backup", at: path)
        do {
            try store.pool.writeWithoutTransaction { try $0.execute(sql: "VACUUM INTO ?", arguments: [file.partialPath]) }
        } catch {
            throw StoreError(explaining: error, in: file.partialPath)
        }
        // Problems of the copy are those of the database.
        let inspection = try inspect(file.partialPath, named: store.path, storageKey, store.schema)
        guard inspection.isWhole else {
            throw StoreError(
                code: .damaged,
                message: "the database at \(store.path) is damaged: waku-push admin check has the details; no backup was written")
        }
        try file.finish()
        return inspection
    }

    /// Replaces the folder's database by a backup, after reading the whole backup. The previous database is kept beside it as
    /// `waku-push.sqlite.replaced`.
    ///
    /// A killed process leaves either the old database or the new one.
    ///
    /// - Parameters:
    ///   - backup: a file that ``write(_:to:storageKey:)`` made, or a copy of a stopped daemon's database.
    ///   - folder: the data folder, locked by the caller, so that no daemon uses it.
    ///   - storageKey: see ``Storage/Sealer/storageKey(of:)``.
    ///   - parts: all parts that have tables in the database.
    /// - Returns: the inspection of the backup.
    /// - Throws: ``StoreError``, and then nothing is changed.
    package static func restore(
        _ backup: String, into folder: DataFolder, storageKey: SymmetricKey, parts: [StorePart]
    ) throws(StoreError) -> StoreInspection {
        let path = DataFolder.databasePath(in: folder.path)
        guard try DatabaseFile.exists(at: backup) else {
            throw StoreError(code: .missing, message: "backup \(backup) is missing: give the file that admin backup made")
        }
        let candidate = path + ".restoring"
        let candidates = ["", "-journal", "-wal", "-shm"].map { candidate + $0 }
        UnfinishedFiles.note(candidates)
        defer { UnfinishedFiles.delete(candidates) }
        // A killed process leaves them.
        for file in candidates { unlink(file) }
        try copy(backup, to: candidate)
        // A copied data folder has a log beside the database.
        if try DatabaseFile.exists(at: backup + "-wal") { try copy(backup + "-wal", to: candidate + "-wal") }
        let inspection = try inspect(candidate, named: backup, storageKey, Schema(parts: parts))
        guard inspection.isWhole else {
            throw StoreError(
                code: .damaged, message: "backup \(backup) is damaged: waku-push admin check has the details; restore another one")
        }
        try replace(path, by: candidate)
        return inspection
    }

    /// Inspects the copy, and merges its log into the file.
    private static func inspect(
        _ path: String, named name: String, _ storageKey: SymmetricKey?, _ schema: Schema
    ) throws(StoreError) -> StoreInspection {
        do {
            let database = try DatabaseQueue(path: path, configuration: .untrusted)
            let inspection = try database.read { try StoreInspection(db: $0, storageKey: storageKey, name, schema: schema) }
            // SQLite does so when it closes the file, too, but does not tell when that failed.
            _ = try database.writeWithoutTransaction { try $0.checkpoint(.truncate) }
            try database.close()
            try sync(path)
            return inspection
        } catch {
            throw StoreError(explaining: error, in: name)
        }
    }

    /// - Parameter link: makes a hard link, like `link(2)`.
    static func replace(
        _ path: String, by candidate: String, link: (String, String) -> Int32 = { Foundation.link($0, $1) }
    ) throws(StoreError) {
        let (replaced, kept) = (path + ".replaced", path + ".replaced.new")
        // A restore that was killed after it had replaced the database left the previous one under this name.
        if access(kept, F_OK) == 0, !isSameFile(kept, path) {
            for suffix in ["", "-wal"] { rename(kept + suffix, path + ".replaced.earlier" + suffix) }
        }
        try keep(path, as: kept, link)
        // A log must not be applied to another database.
        for suffix in ["-wal", "-shm"] { unlink(path + suffix) }
        guard rename(candidate, path) == 0 else {
            for suffix in ["", "-wal"] { unlink(kept + suffix) }
            throw StoreError(code: .cannotCreate, message: "\(path) can't be replaced: give this user access to the folder")
        }
        // Only now, so that a failure leaves the file of an earlier restore.
        if access(kept, F_OK) == 0 {
            unlink(replaced + "-wal")
            for suffix in ["", "-wal"] { rename(kept + suffix, replaced + suffix) }
        }
        UnfinishedFile.syncFolder(of: path)
    }

    private static func isSameFile(_ path: String, _ other: String) -> Bool {
        var (one, two) = (stat(), stat())
        return stat(path, &one) == 0 && stat(other, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino
    }

    /// Gives a database that exists a second name. The name of its log is made first: with the database's own, both are complete.
    private static func keep(_ path: String, as kept: String, _ link: (String, String) -> Int32) throws(StoreError) {
        for suffix in ["", "-wal"] { unlink(kept + suffix) }
        guard FileManager.default.fileExists(atPath: path) else { return }
        // Merges its log; a database that can't be opened is kept with its log.
        if let old = try? DatabaseQueue(path: path, configuration: .hardened) {
            _ = try? old.writeWithoutTransaction { try $0.checkpoint(.truncate) }
            try? old.close()
        }
        do throws(StoreError) {
            for suffix in ["-wal", ""] where FileManager.default.fileExists(atPath: path + suffix) {
                if link(path + suffix, kept + suffix) == 0 { continue }
                // File systems without hard links, such as FAT and SMB shares.
                guard [EPERM, EOPNOTSUPP, ENOSYS].contains(errno) else {
                    throw StoreError(code: .cannotCreate, message: "\(kept + suffix) \(DiskSpace.creationFailure(errno))")
                }
                let unfinished = kept + ".partial"
                unlink(unfinished)
                try copy(path + suffix, to: unfinished)
                _ = try? sync(unfinished)
                rename(unfinished, kept + suffix)
            }
        } catch {
            for suffix in ["", "-wal", ".partial"] { unlink(kept + suffix) }
            throw error
        }
    }

    // MARK: Files

    private static func create(_ path: String) throws(StoreError) -> Int32 {
        let file = DataFolder.openFile(path, O_WRONLY | O_EXCL)
        guard file >= 0 else {
            throw StoreError(code: .cannotCreate, message: "\(path) \(DiskSpace.creationFailure(errno))")
        }
        return file
    }

    private static func copy(_ source: String, to target: String) throws(StoreError) {
        let unreadable = StoreError(code: .missing, message: "backup \(source) can't be read: is it there, and may this user read it?")
        let from = open(source, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard from >= 0 else { throw unreadable }
        defer { close(from) }
        let to = try create(target)
        defer { close(to) }
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = read(from, &buffer, buffer.count)
            guard count >= 0 else { throw unreadable }
            if count == 0 { return }
            guard Foundation.write(to, buffer, count) == count else {
                throw StoreError(code: .unavailable, message: "no disk space for \(target): free some")
            }
        }
    }

    static func sync(_ path: String) throws {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        guard file >= 0, fsync(file) == 0 else { throw DatabaseError(resultCode: .SQLITE_IOERR) }
    }
}
