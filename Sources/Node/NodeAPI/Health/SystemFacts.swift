import Foundation
import NodeMetrics

/// Open file descriptors of this process, and their limit.
package struct OpenFiles: Hashable, Sendable {
    package let used: Int
    package let limit: Int

    /// nil if the system does not provide them.
    package static func now() -> OpenFiles? {
        var limits = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits) == 0 else { return nil }
        let limit = Int(clamping: limits.rlim_cur)
        return ProcessFigures.openFileCount(limit: limit).map { OpenFiles(used: $0, limit: limit) }
    }
}
