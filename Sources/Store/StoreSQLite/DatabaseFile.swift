import Foundation
package import Storage

/// Checks of a database file before SQLite opens it.
package enum DatabaseFile {
    /// - Throws: `StoreError` with `permission` when this user may not read the file or search its folder; with `unsuitable` when it is not a regular
    ///   file, because SQLite would block on a pipe.
    package static func exists(at path: String) throws(StoreError) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else {
            guard errno == EACCES else { return false }
            throw refusal(of: path)
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw StoreError(code: .unsuitable, message: "\(path) is not a regular file: give a database file")
        }
        guard access(path, R_OK) == 0 else { throw refusal(of: path) }
        return true
    }

    /// The copy of the rows of a database whose file was lost: see ``SQLiteStore/checkFiles()``.
    static func rescued(_ path: String) -> String { path + ".rescued" }

    /// Whether there is such a copy, or a part of one: the daemon may have been killed meanwhile.
    package static func isRescued(_ path: String) -> Bool {
        ["", ".partial"].contains { access(rescued(path) + $0, F_OK) == 0 }
    }

    /// Whether this user can't write the file, or can't make files beside it.
    static func isReadOnly(_ path: String) -> Bool {
        access(path, W_OK) != 0 || access(URL(fileURLWithPath: path).deletingLastPathComponent().path, W_OK) != 0
    }

    /// The name by which SQLite opens a file that is read-only. It needs the index of the log (`-shm`) even to read, and can't make one in a read-only
    /// folder. Without an index and without a log there is no other process, and the database is read as a file that can't change.
    static func readOnlyName(of path: String) -> String {
        var log = stat()
        let hasLog = stat(path + "-wal", &log) == 0 && log.st_size > 0
        guard !hasLog, access(path + "-shm", F_OK) != 0 else { return path }
        return URL(fileURLWithPath: path).absoluteString + "?immutable=1"
    }

    private static func refusal(of path: String) -> StoreError {
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        let owner = owner(of: path) ?? owner(of: folder)
        if let owner, access(folder, W_OK | X_OK) == 0 {
            // Root copied it into the folder of this user: the daemon is not to run as root for it.
            return StoreError(
                code: .permission,
                message: "this user may not read \(path), which belongs to \(owner): as root, chown \(NSUserName()): \(path)*")
        }
        let user = owner == "root" ? "root" : "\(owner.map { "its owner, \($0)," } ?? "the daemon's user") or root"
        return StoreError(
            code: .permission,
            message: "this user may not read \(path): run this as \(user)")
    }

    /// The name of the file's owner; nil when it can't be determined.
    private static func owner(of path: String) -> String? {
        (try? FileManager.default.attributesOfItem(atPath: path))?[.ownerAccountName] as? String
    }
}
