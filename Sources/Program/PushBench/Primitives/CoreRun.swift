import Foundation
import Synchronization

/// The operation that a thread repeats.
struct CoreOperation {
    /// Returns the number of operations done.
    let run: () throws -> Int
    /// CPU time that a server on this machine has spent for this thread so far, in nanoseconds.
    var serverTime: () -> UInt64 = { 0 }
}

/// The number of operations, and their wall and CPU time.
struct CoreRun: Sendable {
    var count = 0
    var cores = 1
    var wall = Duration.zero
    var cpu = Duration.zero
    /// The part of ``cpu`` that was spent by servers.
    var serverCPU = Duration.zero

    /// Microseconds of wall time per operation on one core.
    var wallMicroseconds: Double { count == 0 ? 0 : wall.microseconds * Double(cores) / Double(count) }
    var cpuMicroseconds: Double { count == 0 ? 0 : cpu.microseconds / Double(count) }
    var serverMicroseconds: Double { count == 0 ? 0 : serverCPU.microseconds / Double(count) }
    var rate: Double { wall > .zero ? Double(count) / wall.seconds : 0 }

    /// Repeats an operation on as many threads at once, for about `duration`.
    ///
    /// - Parameters:
    ///   - cores: the number of threads.
    ///   - makeOperation: called on each thread to make its operation.
    static func measure(
        cores: Int, for duration: Duration, _ makeOperation: @escaping @Sendable () throws -> CoreOperation
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
            sum.serverCPU += part.serverCPU
            sum.wall += part.wall / cores
        }
        return sum
    }

    private static func measure(
        from start: StartLine, for duration: Duration, _ makeOperation: () throws -> CoreOperation
    ) throws -> CoreRun {
        let operation: CoreOperation
        do {
            operation = try makeOperation()
            // Warm-up, not measured.
            _ = try operation.run()
        } catch {
            // A failing thread must not keep the others waiting.
            start.arrive()
            throw error
        }
        start.wait()
        var run = CoreRun()
        let serverBegan = operation.serverTime()
        let (began, cpuBegan) = (Clock.uptime(), Clock.thread())
        var block = 1
        repeat {
            for _ in 0..<block { run.count += try operation.run() }
            run.wall = .nanoseconds(Clock.uptime() - began)
            // Reading clocks takes time too, so short operations are timed in blocks of hundreds.
            if run.wall < duration / 50 { block = min(block * 2, 1024) }
        } while run.wall < duration
        let ownTime = Clock.thread() - cpuBegan
        // A process that has just ended has no CPU time.
        run.serverCPU = .nanoseconds(max(operation.serverTime(), serverBegan) - serverBegan)
        run.cpu = .nanoseconds(ownTime) + run.serverCPU
        return run
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
