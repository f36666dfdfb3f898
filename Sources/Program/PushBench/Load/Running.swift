import LoopbackRelay
import LoopbackServer
import WakuPushCommands
import Waku

extension LoopbackServer {
    /// Serves a network on a free port while `body` runs with its URL.
    static func running<R: Sendable>(
        _ network: LoopbackNetwork, _ body: @escaping @Sendable (String) async throws -> R
    ) async throws -> R {
        let server = LoopbackServer(network: network, port: 0)
        return try await withServer { bound in
            do throws(LoopbackServerError) {
                try await server.run(bound: bound)
            } catch {
                throw BenchError(code: .unavailable, message: error.message)
            }
        } _: {
            try await body("http://127.0.0.1:\($0)")
        }
    }
}

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
