import Foundation

/// Open file descriptors of this process, and their limit.
package struct OpenFiles: Hashable, Sendable {
    package let used: Int
    package let limit: Int

    /// nil if the system does not provide them.
    package static func now() -> OpenFiles? {
        var limits = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits) == 0,
            let open = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        else { return nil }
        return OpenFiles(used: open.count, limit: Int(clamping: limits.rlim_cur))
    }
}

package enum Disk {
    /// Free bytes for this user on the file system of a file or folder; nil if that does not exist.
    package static func freeBytes(at path: String) -> Int64? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        return Int64(clamping: status.f_bavail).multipliedReportingOverflow(by: Int64(clamping: status.f_frsize)).partialValue
    }
}
