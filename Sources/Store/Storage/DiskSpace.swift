import Foundation

/// The free space of a file system.
package struct DiskSpace: Hashable, Sendable {
    package var bytes: Int64
    /// Free inodes, of which each file needs one; nil for a file system without a fixed number of them.
    package var inodes: Int64?

    package init(bytes: Int64, inodes: Int64? = nil) {
        (self.bytes, self.inodes) = (bytes, inodes)
    }

    /// The space for this user on the file system of a file or folder; nil if that does not exist.
    package init?(at path: String) {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        bytes = Int64(clamping: status.f_bavail).multipliedReportingOverflow(by: Int64(clamping: status.f_frsize)).partialValue
        inodes = status.f_files == 0 ? nil : Int64(clamping: status.f_favail)
    }

    /// Whether a file of 128 KiB beside the one at this path, which is deleted at once, finds space. The figures of the file system know no quotas, and
    /// no space that is taken later, as with compression. Also true if the file can't be made for another reason than space.
    package static func isLeft(beside path: String) -> Bool {
        let test = path + ".space"
        let file = open(test, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return !isFull(errno) }
        defer { close(file) }
        unlink(test)
        // Not zeros, which a file system may store as a hole.
        let bytes = [UInt8](repeating: 0xA5, count: 128 << 10)
        let count = write(file, bytes, bytes.count)
        guard count == bytes.count else { return count < 0 && !isFull(errno) }
        return fsync(file) == 0 || !isFull(errno)
    }

    private static func isFull(_ code: Int32) -> Bool { code == ENOSPC || code == EDQUOT }

    /// Why a file can't be made, and the remedy; continues a sentence that begins with its name.
    ///
    /// - Parameters:
    ///   - code: `errno` of the attempt.
    ///   - remedy: for a cause that is neither an existing file nor a full disk.
    package static func creationFailure(_ code: Int32, remedy: String = "choose a folder that this user may write to") -> String {
        switch code {
        case EEXIST: "exists already: choose another name"
        case _ where isFull(code): "can't be made: the disk is full, or has no free inode (df -i): free some"
        default: "can't be made: \(remedy)"
        }
    }
}
