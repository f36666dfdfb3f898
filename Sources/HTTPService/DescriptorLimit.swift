import Foundation

/// How many file descriptors this process may have open (`RLIMIT_NOFILE`).
package enum DescriptorLimit {
    /// The soft limit; 1,024, the usual one, where the system does not tell.
    package static var current: Int { limits.map { Int(clamping: $0.rlim_cur) } ?? 1024 }

    /// Raises the soft limit to the hard one, which every process may do. The soft one is low for programs that use `select`; there is none here.
    ///
    /// Returns the limit in force. A system that refuses leaves it as it was.
    @discardableResult
    package static func raise() -> Int {
        if var limits, limits.rlim_cur < limits.rlim_max {
            limits.rlim_cur = limits.rlim_max
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits)
        }
        return current
    }

    private static var limits: rlimit? {
        var limits = rlimit()
        return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits) == 0 ? limits : nil
    }
}
