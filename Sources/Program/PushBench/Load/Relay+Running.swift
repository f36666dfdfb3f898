import Waku

extension Relay {
    /// Runs the relay while `body` runs, and closes it afterwards.
    func running<R>(
        deliver: @escaping @Sendable ([ReceivedMessage]) async -> Void = { _ in }, _ body: () async throws -> R
    ) async throws -> R {
        let task = Task { await run(deliver: deliver) }
        let result: Result<R, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        task.cancel()
        await task.value
        await close()
        return try result.get()
    }
}
