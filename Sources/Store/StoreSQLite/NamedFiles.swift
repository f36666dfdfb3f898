import Foundation

/// The files of an open database. The process goes on with an open file that is deleted, moved or replaced, and no other program finds what it writes
/// then.
struct NamedFiles: Sendable {
    private struct Identity: Equatable {
        let device: dev_t
        let inode: ino_t

        init(_ status: stat) { (device, inode) = (status.st_dev, status.st_ino) }
    }

    /// Of the database file, its log, and the log's index.
    private static let suffixes = ["", "-wal", "-shm"]

    private let path: String
    private let opened: [String: Identity]

    /// - Parameter path: the database file, opened and read already: so its log exists.
    init(of path: String) {
        self.path = path
        opened = Self.suffixes.reduce(into: [:]) { opened, suffix in
            var status = stat()
            if stat(path + suffix, &status) == 0 { opened[suffix] = Identity(status) }
        }
    }

    /// The suffix of the first file whose name refers to no file or to another one; nil if there is none.
    var lost: String? { Self.suffixes.first(where: isLost) }

    private func isLost(_ suffix: String) -> Bool {
        guard let identity = opened[suffix] else { return false }
        var status = stat()
        // Other errors, as of permissions or the disk, don't tell.
        guard stat(path + suffix, &status) == 0 else { return errno == ENOENT || errno == ENOTDIR }
        return Identity(status) != identity
    }
}
