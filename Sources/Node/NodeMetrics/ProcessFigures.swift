import Core
import Foundation

/// Figures of this process from the system; nil where unavailable.
package struct ProcessFigures: Sendable {
    package var processorSeconds: Double?
    package var residentBytes: Double?
    package var virtualBytes: Double?
    package var openFiles: Double?
    package var openFileLimit: Double?
    /// Unix time in seconds.
    package var startTime: Double?

    /// The current figures, from `/proc`.
    package static func now() -> ProcessFigures {
        var figures = ProcessFigures()
        let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
        let stat = stat()
        if let user = stat[14], let system = stat[15] { figures.processorSeconds = (user + system) / ticks }
        figures.virtualBytes = stat[23]
        figures.residentBytes = stat[24].map { $0 * Double(sysconf(Int32(_SC_PAGESIZE))) }
        figures.startTime = startTime
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            figures.openFileLimit = Double(limit.rlim_cur)
            figures.openFiles = openFileCount(limit: Int(clamping: limit.rlim_cur)).map { Double($0) }
        }
        return figures
    }

    /// The number of open file descriptors; nil if the system does not provide it.
    ///
    /// - Parameters:
    ///   - limit: the result when no further file can be opened, of which counting needs one.
    ///   - open: `opendir`.
    package static func openFileCount(limit: Int, open: (String) -> OpaquePointer? = { opendir($0) }) -> Int? {
        guard let folder = open("/proc/self/fd") else { return errno == EMFILE || errno == ENFILE ? limit : nil }
        defer { closedir(folder) }
        var count = 0
        while let entry = readdir(folder) {
            // Without "." and "..".
            if entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
        }
        return count
    }

    /// Computed once, so that it does not change with the wall clock. From the time since the boot of the machine: sandboxes hide the time of the boot.
    private static let startTime: Double? = {
        guard let start = stat()[22] else { return nil }
        let age = Instant.now.sinceEpoch / .seconds(1) - start / Double(sysconf(Int32(_SC_CLK_TCK)))
        return (Date().timeIntervalSince1970 - age).rounded()
    }()

    /// The numbers in `/proc/self/stat`, by their number in proc(5).
    private static func stat() -> [Int: Double] {
        let text = String(decoding: FileManager.default.contents(atPath: "/proc/self/stat") ?? Data(), as: UTF8.self)
        // The name in parentheses may contain anything.
        let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
        return Dictionary(uniqueKeysWithValues: fields.enumerated().compactMap { index, field in Double(field).map { (index + 3, $0) } })
    }
}
