import Foundation

/// Of this process.
package struct OpenFiles: Hashable, Sendable {
    package let used: Int
    package let limit: Int

    package init(used: Int, limit: Int) {
        self.used = used
        self.limit = limit
    }

    /// nil where the system does not tell.
    package static func now() -> OpenFiles? {
        var limits = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits) == 0,
            let open = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        else { return nil }
        return OpenFiles(used: open.count, limit: Int(clamping: limits.rlim_cur))
    }
}

package enum Disk {
    /// Bytes that this user may still write where a file or folder is; nil when it is not there.
    package static func freeBytes(at path: String) -> Int64? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        return Int64(clamping: status.f_bavail).multipliedReportingOverflow(by: Int64(clamping: status.f_frsize)).partialValue
    }
}
