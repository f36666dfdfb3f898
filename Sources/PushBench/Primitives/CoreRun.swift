import Foundation
import Synchronization

/// The number of operations, and their wall and CPU time.
struct CoreRun: Sendable {
    var count = 0
    var cores = 1
    var wall = Duration.zero
    var cpu = Duration.zero

    /// Microseconds of wall time per operation on one core.
    var wallMicroseconds: Double { count == 0 ? 0 : wall.microseconds * Double(cores) / Double(count) }
    var cpuMicroseconds: Double { count == 0 ? 0 : cpu.microseconds / Double(count) }
    var rate: Double { wall > .zero ? Double(count) / wall.seconds : 0 }

    /// Repeats an operation on as many threads at once, for about `duration`.
    ///
    /// - Parameters:
    ///   - cores: the number of threads.
    ///   - duration: the approximate duration.
    ///   - makeOperation: called on each thread to make its operation, which returns how many it did at once.
    static func measure(
        cores: Int, for duration: Duration, _ makeOperation: @escaping @Sendable () throws -> () throws -> Int
    ) async throws -> CoreRun {
        let start = StartLine(count: cores)
        let parts = try await withThrowingTaskGroup(of: CoreRun.self) { group in
            for _ in 0..<cores {
                group.addTask { try await onThread { try measure(from: start, for: duration, makeOperation) } }
            }
            return try await group.reduce(into: [CoreRun]()) { $0.append($1) }
        }
        var sum = CoreRun(cores: cores)
        for part in parts {
            sum.count += part.count
            sum.cpu += part.cpu
            sum.wall += part.wall / cores
        }
        return sum
    }

    private static func measure(
        from start: StartLine, for duration: Duration, _ makeOperation: () throws -> () throws -> Int
    ) throws -> CoreRun {
        let operation: () throws -> Int
        do {
            operation = try makeOperation()
            // Warm-up, not measured.
            _ = try operation()
        } catch {
            // A failing thread must not keep the others waiting.
            start.arrive()
            throw error
        }
        start.wait()
        var run = CoreRun()
        let (began, cpuBegan) = (Clock.uptime(), Clock.thread())
        var block = 1
        repeat {
            for _ in 0..<block { run.count += try operation() }
            run.wall = .nanoseconds(Clock.uptime() - began)
            // Reading clocks takes time too, so short operations are timed in blocks of hundreds.
            if run.wall < duration / 50 { block = min(block * 2, 1024) }
        } while run.wall < duration
        run.cpu = .nanoseconds(Clock.thread() - cpuBegan)
        return run
    }

    private static func onThread<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }
}

/// Releases all threads when the last one has arrived.
private final class StartLine: Sendable {
    private let missing: Atomic<Int>

    init(count: Int) { missing = Atomic(count) }

    func arrive() { missing.subtract(1, ordering: .relaxed) }

    func wait() {
        arrive()
        while missing.load(ordering: .relaxed) > 0 { usleep(20) }
    }
}

extension Duration {
    var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
    var microseconds: Double { seconds * 1e6 }
}
