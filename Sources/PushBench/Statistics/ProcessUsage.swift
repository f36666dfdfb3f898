import Dispatch
import Foundation

/// What this process has used.
struct ProcessUsage {
    /// User and system, of all threads.
    let cpu: Duration

    static func now() -> ProcessUsage {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return ProcessUsage(cpu: duration(usage.ru_utime) + duration(usage.ru_stime))
    }

    private static func duration(_ time: timeval) -> Duration {
        .seconds(time.tv_sec) + .microseconds(time.tv_usec)
    }

    /// Bytes of memory that a process has in use; nil when there is no such process.
    static func residentBytes(of process: Int32 = getpid()) -> Int? {
        guard let status = FileManager.default.contents(atPath: "/proc/\(process)/status") else { return nil }
        let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }.map { $0 * 1024 }
    }
}
