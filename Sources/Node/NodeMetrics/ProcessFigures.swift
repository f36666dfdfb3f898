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
        // The name in parentheses may contain anything. The fields after it have the numbers from 3 in proc(5).
        let stat = text("/proc/self/stat").split(separator: ")").last?.split(separator: " ") ?? []
        func field(_ number: Int) -> Double? { stat.indices.contains(number - 3) ? Double(stat[number - 3]) : nil }
        if let user = field(14), let system = field(15) { figures.processorSeconds = (user + system) / ticks }
        figures.virtualBytes = field(23)
        figures.residentBytes = field(24).map { $0 * Double(sysconf(Int32(_SC_PAGESIZE))) }
        let boot = text("/proc/stat").split(separator: "\n").first { $0.hasPrefix("btime ") }?.split(separator: " ").last.flatMap {
            Double($0)
        }
        if let boot, let start = field(22) { figures.startTime = boot + start / ticks }
        figures.openFiles = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")).map { Double($0.count) }
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 { figures.openFileLimit = Double(limit.rlim_cur) }
        return figures
    }

    private static func text(_ path: String) -> String {
        String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
    }
}
