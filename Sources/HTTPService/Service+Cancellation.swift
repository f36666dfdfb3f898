package import Logging
package import ServiceLifecycle

extension Service {
    /// Runs until the task is cancelled or the process shuts down gracefully, and ends gracefully either way.
    ///
    /// A Hummingbird application that is cancelled rather than asked to end drops connections that come in at that moment, which is fatal to
    /// it.
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
