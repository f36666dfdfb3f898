import Foundation

/// A daemon's data folder, and the lock that keeps a second daemon from using it.
package final class DataFolder: Sendable {
    package let path: String
    private let lock: Int32
    /// Excludes commands beside a daemon; nil in a daemon, beside which they may run.
    private let use: FolderUse?

    package static func databasePath(in path: String) -> String { path + "/waku-push.sqlite" }

    /// Creates the folder with mode 0700 if it is missing, and locks it until ``unlock()`` or until this value is deallocated.
    ///
    /// A world-writable folder is refused: another user could replace the database, the node key or the admin socket. A folder that other users may
    /// read is accepted, because every file in it has mode 0600; so is a group-writable folder, as container volumes are.
    ///
    /// - Parameters:
    ///   - path: the data folder.
    ///   - excludesCommands: whether to exclude commands that a daemon left running beside it, such as an import: for a command that replaces, moves or
    ///     re-encrypts the store.
    /// - Throws: ``StoreError`` with `cannotCreate`, `permission` or `locked`
    package init(locking path: String, excludesCommands: Bool = false) throws(StoreError) {
        self.path = path
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw StoreError(code: .cannotCreate, message: "data folder \(path) can't be made: make it, or choose another by --data")
        }
        try Self.check(path)
        lock = Self.openFile(path + "/lock", O_RDWR | O_NOFOLLOW)
        guard lock >= 0 else {
            guard errno != ENOSPC else {
                throw StoreError(code: .unavailable, message: "no disk space or inode for data folder \(path): free some (df -i)")
            }
            throw StoreError(
                code: .permission, message: "data folder \(path), or its file lock, can't be written to: give this user access to it")
        }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            close(lock)
            throw StoreError(
                code: .locked, message: "data folder \(path) is in use by another waku-push: stop that one, or choose another by --data")
        }
        do {
            use = excludesCommands ? try FolderUse(of: path, isExclusive: true) : nil
        } catch {
            close(lock)
            throw error
        }
    }

    /// Checks what can be seen of the folder without making or locking it. A missing folder passes.
    ///
    /// - Throws: ``StoreError`` with `cannotCreate` or `permission`
    package static func check(_ path: String) throws(StoreError) {
        guard !path.isEmpty else { throw StoreError(code: .cannotCreate, message: "--data is empty: give the path of a folder") }
        var isDirectory: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), !isDirectory.boolValue {
            throw StoreError(code: .cannotCreate, message: "data folder \(path) is a file: choose another by --data")
        }
        if !FileManager.default.fileExists(atPath: path), (try? FileManager.default.destinationOfSymbolicLink(atPath: path)) != nil {
            throw StoreError(
                code: .cannotCreate, message: "data folder \(path) is a link to a folder that can't be found: is its volume mounted?")
        }
        let mode = (try? FileManager.default.attributesOfItem(atPath: URL(fileURLWithPath: path).resolvingSymlinksInPath().path))
            .flatMap { $0[.posixPermissions] as? Int }
        if let mode, mode & 0o002 != 0 {
            throw StoreError(
                code: .permission,
                message:
                    "data folder \(path) can be written to by everybody (mode 0\(String(mode, radix: 8))): chmod 700 \(path), or give a folder "
                    + "in it by --data")
        }
        if isReadOnly(path) {
            throw StoreError(
                code: .permission,
                message: "data folder \(path) is on a read-only file system: mount it for writing, or choose another by --data")
        }
    }

    /// Opens a file of a data folder, or creates it with mode 0600. A file that root creates belongs to the folder's owner, so that the daemon can use it;
    /// one that was there keeps its owner, since it may be a link.
    ///
    /// - Returns: the descriptor, or -1 with `errno`.
    package static func openFile(_ path: String, _ flags: Int32) -> Int32 {
        let created = open(path, flags | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard created < 0 else {
            var folder = stat()
            if geteuid() == 0, stat(URL(fileURLWithPath: path).deletingLastPathComponent().path, &folder) == 0 {
                _ = fchown(created, folder.st_uid, folder.st_gid)
            }
            return created
        }
        guard errno == EEXIST, flags & O_EXCL == 0 else { return -1 }
        return open(path, flags | O_CLOEXEC)
    }

    /// Whether a file or folder exists on a file system that is mounted read-only, as Linux does after errors of the disk.
    package static func isReadOnly(_ path: String) -> Bool {
        access(path, W_OK) != 0 && errno == EROFS
    }

    /// Releases the lock, so that another daemon can use the folder. No file in it may be used afterwards.
    package func unlock() {
        flock(lock, LOCK_UN)
    }

    deinit {
        close(lock)
    }
}
