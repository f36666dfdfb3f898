import Foundation

/// A daemon's data folder, and the lock that keeps a second daemon from using it.
package final class DataFolder: Sendable {
    package let path: String
    private let lock: Int32

    package static func databasePath(in path: String) -> String { path + "/waku-push.sqlite" }

    /// Creates the folder with mode 0700 if it is missing, and locks it until ``unlock()`` or until this value is deallocated.
    ///
    /// A world-writable folder is refused: another user could replace the database, the node key or the admin socket. A folder that other users may
    /// read is accepted, because every file in it has mode 0600; so is a group-writable folder, as container volumes are.
    ///
    /// - Throws: ``StoreError`` with `cannotCreate`, `permission` or `locked`
    package init(locking path: String) throws(StoreError) {
        self.path = path
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw StoreError(code: .cannotCreate, message: "data folder \(path) can't be made: make it, or choose another by --data")
        }
        try Self.check(path)
        lock = open(path + "/lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard lock >= 0 else {
            guard errno != ENOSPC else {
                throw StoreError(code: .unavailable, message: "no disk space or inode for data folder \(path): free some (df -i)")
            }
            throw StoreError(code: .permission, message: "data folder \(path) can't be written to: give this user access to it")
        }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
            // All properties are set by now: deinit closes the file.
            throw StoreError(
                code: .locked, message: "data folder \(path) is in use by another waku-push: stop that one, or choose another by --data")
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
