import Foundation

/// The system's clocks, in nanoseconds.
enum Clock {
    /// Monotonic time.
    static func uptime() -> UInt64 { read(CLOCK_MONOTONIC) }
    /// CPU time of this process, user and system, on all threads.
    static func process() -> UInt64 { read(CLOCK_PROCESS_CPUTIME_ID) }
    /// CPU time of this thread.
    static func thread() -> UInt64 { read(CLOCK_THREAD_CPUTIME_ID) }

    private static func read(_ clock: clockid_t) -> UInt64 {
        withUnsafeTemporaryAllocation(of: timespec.self, capacity: 1) { time in
            guard let start = time.baseAddress, clock_gettime(clock, start) == 0 else { return 0 }
            // Accessed by offset, because several imported C modules define the member names.
            let words = UnsafeRawPointer(start)
            return UInt64(words.load(as: Int.self)) * 1_000_000_000
                + UInt64(words.load(fromByteOffset: MemoryLayout<Int>.size, as: Int.self))
        }
    }
}

enum ProcessMemory {
    /// Resident memory of a process in bytes; nil if the process does not exist.
    static func residentBytes(of process: Int32 = getpid()) -> Int? {
        guard let status = FileManager.default.contents(atPath: "/proc/\(process)/status") else { return nil }
        let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }.map { $0 * 1024 }
    }
}

/// CPU time and context switches of a process since its start, without those of threads that have ended.
struct ProcessUsage {
    var cpuNanoseconds: UInt64 = 0
    var contextSwitches = 0

    init(of process: Int32) {
        let folder = "/proc/\(process)/task"
        for thread in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
            func words(_ file: String) -> [Substring] {
                let contents = FileManager.default.contents(atPath: "\(folder)/\(thread)/\(file)") ?? Data()
                return String(decoding: contents, as: UTF8.self).split(whereSeparator: \.isWhitespace)
            }
            cpuNanoseconds += words("schedstat").first.flatMap { UInt64($0) } ?? 0
            let status = words("status")
            for name in ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"] {
                guard let index = status.firstIndex(of: Substring(name)), index + 1 < status.endIndex else { continue }
                contextSwitches += Int(status[index + 1]) ?? 0
            }
        }
    }
}
