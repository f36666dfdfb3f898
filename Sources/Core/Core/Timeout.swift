/// Runs an operation for at most this time; nil sets no limit. An operation that ignores its cancellation delays the return.
///
/// - Returns: the result of the operation; nil after the timeout.
package func withTimeout<Result: Sendable>(_ timeout: Duration?, _ operation: @escaping @Sendable () async -> Result?) async -> Result? {
    await withTaskGroup(of: Result?.self) { group in
        group.addTask { await operation() }
        if let timeout {
            group.addTask {
                try? await Task.sleep(for: timeout)
                return nil
            }
        }
        defer { group.cancelAll() }
        return await group.next() ?? nil
    }
}
