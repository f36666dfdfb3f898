/// Runs both closures at once, and returns the result of `body`; `companion` is cancelled then. An error of either cancels the other and is thrown.
package func firstResult<R: Sendable>(
    of body: @escaping @Sendable () async throws -> R, beside companion: @escaping @Sendable () async throws -> Void
) async throws -> R {
    try await withThrowingTaskGroup(of: R?.self) { group in
        group.addTask {
            try await companion()
            return nil
        }
        group.addTask { try await body() }
        defer { group.cancelAll() }
        for try await case let result? in group { return result }
        throw CancellationError()
    }
}

/// Runs a server of this process while `body` runs with its port.
package func withServer<R: Sendable>(
    _ serve: @escaping @Sendable (_ bound: @escaping @Sendable (Int) -> Void) async throws -> Void,
    _ body: @escaping @Sendable (_ port: Int) async throws -> R
) async throws -> R {
    let (ports, bind) = AsyncStream.makeStream(of: Int.self)
    return try await firstResult {
        for await port in ports { return try await body(port) }
        throw CommandFailure(.unavailable, "can't listen on a port of 127.0.0.1")
    } beside: {
        defer { bind.finish() }
        try await serve { bind.yield($0) }
    }
}
