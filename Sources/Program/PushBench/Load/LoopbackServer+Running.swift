import WakuPushCommands
import LoopbackRelay
import LoopbackServer

extension LoopbackServer {
    /// Serves a network on a free port while `body` runs with its URL.
    static func running<R: Sendable>(
        _ network: LoopbackNetwork, _ body: @escaping @Sendable (String) async throws -> R
    ) async throws -> R {
        let server = LoopbackServer(network: network, port: 0)
        let (ports, bind) = AsyncStream.makeStream(of: Int.self)
        return try await firstResult {
            for await port in ports { return try await body("http://127.0.0.1:\(port)") }
            throw CancellationError()
        } beside: {
            defer { bind.finish() }
            do throws(LoopbackServerError) {
                try await server.run { bind.yield($0) }
            } catch {
                throw BenchError(code: .unavailable, message: error.message)
            }
        }
    }
}
