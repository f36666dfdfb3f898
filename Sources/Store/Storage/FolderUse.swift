import Foundation

/// The use of a data folder's store by a command beside a running daemon. Until this value is deallocated, no command replaces, moves or re-encrypts
/// the store, even if the daemon stops meanwhile.
package final class FolderUse: Sendable {
    /// The folder itself is locked: its lock file belongs to the daemon.
    private let folder: Int32

    /// - Parameters:
    ///   - path: an existing data folder.
    ///   - isExclusive: whether to exclude all other uses: for a command that replaces, moves or re-encrypts the store.
    /// - Throws: ``StoreError`` with `locked`
    package init(of path: String, isExclusive: Bool = false) throws(StoreError) {
        folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        // Some file systems have no locks.
        guard flock(folder, (isExclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0 || errno != EWOULDBLOCK else {
            throw StoreError(code: .locked, message: "data folder \(path) is in use by another command, such as an import: wait for it")
        }
    }

    deinit {
        close(folder)
    }
}
