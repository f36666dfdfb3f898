import Foundation

/// A core dump of this process would have its keys, and the contents of messages in progress.
enum CoreDump {
    /// Sets the soft limit of its size to 0, which programs that take dumps from the kernel respect too. The hard limit stays, so that
    /// `prlimit --core=unlimited --pid` permits a dump.
    static func forbid() {
        let resource = __rlimit_resource_t(RLIMIT_CORE.rawValue)
        var limits = rlimit()
        guard getrlimit(resource, &limits) == 0 else { return }
        limits.rlim_cur = 0
        setrlimit(resource, &limits)
    }
}
