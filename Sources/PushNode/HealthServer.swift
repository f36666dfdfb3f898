import Hummingbird
import Logging
import NIOCore

/// `GET /healthz`: the process answers. `GET /readyz`: 200 once messages come in and the store keeps them; else 503, and why, a line each.
struct HealthServer {
    let address: SocketAddress
    /// What stands in the way of being ready; empty when nothing does.
    let obstacles: @Sendable () -> [String]

    func application() -> some ApplicationProtocol {
        let router = Router()
        router.get("healthz") { _, _ in "ok\n" }
        router.get("readyz") { [obstacles] _, _ in
            let obstacles = obstacles()
            let text = obstacles.isEmpty ? "ready\n" : obstacles.map { $0 + "\n" }.joined()
            return Response(
                status: obstacles.isEmpty ? .ok : .serviceUnavailable, headers: [.contentType: "text/plain; charset=utf-8"],
                body: .init(byteBuffer: ByteBuffer(string: text)))
        }
        return Application(
            router: router, configuration: .init(address: .hostname(address.host, port: address.port)),
            logger: Logger(label: "http") { _ in SwiftLogNoOpLogHandler() })
    }
}
