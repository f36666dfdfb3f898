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

    /// Why a file can't be made, and the remedy; continues a sentence that begins with its name.
    ///
    /// - Parameters:
    ///   - code: `errno` of the attempt.
    ///   - remedy: for a cause that is neither an existing file nor a full disk.
    package static func creationFailure(_ code: Int32, remedy: String = "choose a folder that this user may write to") -> String {
        switch code {
        case EEXIST: "exists already: choose another name"
        case ENOSPC, EDQUOT: "can't be made: the disk is full, or has no free inode (df -i): free some"
        default: "can't be made: \(remedy)"
        }
    }
}
