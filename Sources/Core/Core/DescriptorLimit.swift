import Foundation

/// The limit of open file descriptors of this process, `RLIMIT_NOFILE`.
package enum DescriptorLimit {
    /// The soft limit; 1,024, the usual one, when it cannot be read.
    package static var current: Int { limits.map { Int(clamping: $0.rlim_cur) } ?? 1024 }

    /// Raises the soft limit to the hard limit, which every process may do. The default soft limit is low for the sake of programs that use
    /// `select`, which this one does not.
    ///
    /// - Returns: The soft limit in force, unchanged when the system refuses.
    @discardableResult
    package static func raise() -> Int {
        if var limits, limits.rlim_cur < limits.rlim_max {
            limits.rlim_cur = limits.rlim_max
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits)
        }
        return current
    }

    /// The descriptors of a limit that listeners may use, for connections from outside. The reserve, a quarter and at least ``leastReserve``, is for
    /// the event loops, the database, gorush, the relay, and libdispatch, which ends the process when it gets no descriptor.
    package static func forListeners(of limit: Int = current) -> Int { max(limit - max(limit / 4, leastReserve), leastForListeners) }

    private static var leastReserve: Int { 64 + 4 * ProcessInfo.processInfo.activeProcessorCount }
    private static let leastForListeners = 64

    /// The lowest limit with which the node starts.
    package static var minimum: Int { leastReserve + leastForListeners }

    private static var limits: rlimit? {
        var limits = rlimit()
        return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits) == 0 ? limits : nil
    }
}
