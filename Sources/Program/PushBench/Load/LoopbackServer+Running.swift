import LoopbackRelay
import LoopbackServer
import WakuPushCommands

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
