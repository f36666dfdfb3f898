import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import Prometheus

/// `GET /healthz`: the process answers. `GET /readyz`: 200 once messages come in, the store keeps them and gorush takes notifications; else
/// 503, and why, a line each. `GET /metrics`: ``Metric``. `GET /`: ``StatusPage``, of which `GET /status.json` is the same for programs. `POST /feedback`: ``FeedbackEndpoint``.
struct HealthServer {
    let address: SocketAddress
    /// nil: not served.
    let feedback: FeedbackEndpoint?
    /// What stands in the way of being ready; empty when nothing does.
    let obstacles: @Sendable () -> [String]
    /// What `GET /metrics` answers.
    let metrics: @Sendable (ExpositionFormat) async -> String
    let status: @Sendable () async -> StatusFigures
    /// Is told the port once it is listened on.
    let bound: @Sendable (Int) -> Void

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
        router.get("metrics") { [metrics] request, _ in
            let format = ExpositionFormat(accept: request.headers[.accept])
            return Response(
                status: .ok, headers: [.contentType: format.contentType, .vary: "Accept"],
                body: .init(byteBuffer: ByteBuffer(string: await metrics(format))))
        }
        router.get("") { [status] _, _ in
            Self.page(StatusPage(status: await status()).document.text)
        }
        router.get("status.json") { [status] _, _ in
            Response(
                status: .ok, headers: [.contentType: "application/json; charset=utf-8", .cacheControl: "no-store"],
                body: .init(byteBuffer: ByteBuffer(bytes: await status().json)))
        }
        if let feedback {
            router.post("feedback") { request, _ in await feedback.answer(request) }
        }
        return Application(
            router: router, configuration: .init(address: .hostname(address.host, port: address.port)),
            onServerRunning: { [bound] channel in
                if let port = channel.localAddress?.port { bound(port) }
            },
            logger: Logger(label: "http") { _ in SwiftLogNoOpLogHandler() })
    }

    private static func page(_ text: String) -> Response {
        var headers: HTTPFields = [
            .contentType: "text/html; charset=utf-8", .cacheControl: "no-store",
            .contentSecurityPolicy: StatusPage.contentSecurityPolicy, .xContentTypeOptions: "nosniff",
        ]
        if let name = HTTPField.Name("Referrer-Policy") { headers[name] = "no-referrer" }
        return Response(status: .ok, headers: headers, body: .init(byteBuffer: ByteBuffer(string: text)))
    }
}
