extension Duration {
    /// At most 136 years: `Task.sleep` traps for durations near the end of their range, with which applications ask for no limit.
    package var forSleeping: Duration { min(self, .seconds(Int64(1) << 32)) }
}

/// Runs an operation for at most this time; nil sets no limit. An operation that ignores its cancellation delays the return.
///
/// - Returns: the result of the operation; nil after the timeout.
package func withTimeout<Result: Sendable>(_ timeout: Duration?, _ operation: @escaping @Sendable () async -> Result?) async -> Result? {
    await withTaskGroup(of: Result?.self) { group in
        group.addTask { await operation() }
        if let timeout {
            group.addTask {
                try? await Task.sleep(for: timeout.forSleeping)
                return nil
            }
        }
        defer { group.cancelAll() }
        return await group.next() ?? nil
    }
}
