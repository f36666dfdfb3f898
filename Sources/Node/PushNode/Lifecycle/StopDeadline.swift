import ServiceLifecycle

/// Limits the duration of a stop, whatever its work waits for: a database that hangs would hold it up for as long as its connections take to fail.
struct StopDeadline {
    /// From the graceful shutdown, or from the cancellation.
    let limit: Duration

    /// Runs `body` to its end, but not beyond the limit.
    ///
    /// - Returns: false if the limit has passed. The body is abandoned then: what remains of it runs until the process exits.
    /// - Throws: the errors of `body`.
    func run(_ body: @escaping @Sendable () async throws -> Void) async throws -> Bool {
        let (outcomes, outcome) = AsyncStream.makeStream(of: Result<Bool, any Error>.self)
        // Tasks of their own, since a task group would wait for the body.
        let work = Task {
            do {
                try await body()
                outcome.yield(.success(true))
            } catch {
                outcome.yield(.failure(error))
            }
        }
        let first = Task {
            for await outcome in outcomes { return outcome }
            preconditionFailure("this task is never cancelled")
        }
        let startTimer: @Sendable () -> Void = {
            Task {
                try? await Task.sleep(for: limit)
                outcome.yield(.success(false))
            }
        }
        let ended = await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                await first.value
            } onGracefulShutdown: {
                startTimer()
            }
        } onCancel: {
            work.cancel()
            startTimer()
        }
        return try ended.get()
    }
}
