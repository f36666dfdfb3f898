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
