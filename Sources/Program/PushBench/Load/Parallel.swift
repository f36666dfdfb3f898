import Foundation

/// Runs `body`, which may block, on a thread of its own.
func onThread<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}

/// Makes values on all cores, ordered by their numbers.
func makeInParallel<T: Sendable>(_ count: Int, cores: Int, _ make: @escaping @Sendable (Int) -> T) async -> [T] {
    let chunk = 64
    var starts = stride(from: 0, to: count, by: chunk).makeIterator()
    return await withTaskGroup(of: (Int, [T]).self) { group in
        func addNext() {
            guard let start = starts.next() else { return }
            group.addTask { (start, (start..<min(start + chunk, count)).map(make)) }
        }
        for _ in 0..<cores { addNext() }
        var chunks: [(Int, [T])] = []
        for await made in group {
            chunks.append(made)
            addNext()
        }
        return chunks.sorted { $0.0 < $1.0 }.flatMap(\.1)
    }
}

/// Waits until a count reaches `wanted`. Returns false if it did not change within the timeout.
func waitForCount(_ wanted: Int, timeout: Duration = BenchRelay.timeout, of count: () -> Int) async throws -> Bool {
    var last = count()
    var deadline = ContinuousClock.now + timeout
    while true {
        let now = count()
        if now >= wanted { return true }
        if now != last { (last, deadline) = (now, .now + timeout) }
        guard ContinuousClock.now < deadline else { return false }
        try await Task.sleep(for: .milliseconds(2))
    }
}

/// Waits until a condition holds.
///
/// - Throws: ``BenchError`` with `problem` if it does not within the limit.
func waitUntil(
    _ limit: Duration, interval: Duration = .milliseconds(2), else problem: String, _ condition: () async -> Bool
) async throws {
    let deadline = ContinuousClock.now + limit
    while await !condition() {
        guard ContinuousClock.now < deadline else { throw BenchError(code: .unavailable, message: problem) }
        try await Task.sleep(for: interval)
    }
}
