package import Logging
package import ServiceLifecycle

extension Service {
    /// Runs until the task is cancelled or the process shuts down, gracefully in both cases.
    ///
    /// Cancelling a Hummingbird application directly drops connections that are accepted at that moment, which crashes it.
    package func runUntilCancelled(logger: Logger) async throws {
        let group = ServiceGroup(services: [self], logger: logger)
        let run = Task { try await group.run() }
        do {
            try await withTaskCancellationHandler {
                try await run.value
            } onCancel: {
                Task { await group.triggerGracefulShutdown() }
            }
        } catch {
            if error is CancellationError || Task.isCancelled { return }
            throw error
        }
    }
}
