import NodeAPI
import HTTPService
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NodeMetrics

/// The HTTP endpoints of a node.
///
/// | path | response |
/// |---|---|
/// | `GET /healthz` | 200 while the process answers |
/// | `GET /readyz` | 200 while no check of the node fails; else 503 with a line for each that does |
/// | `GET /metrics` | ``Metric`` values |
/// | `GET /`, `GET /status.json` | `PageDocument`, and the same as JSON |
/// | `GET /web-push` | the VAPID public key, as JSON: `{"key":"…"}`; 404 when the node does not post to Web Push services |
/// | `POST /feedback` | ``FeedbackEndpoint`` |
/// | `POST /search` | ``SearchEndpoint`` |
///
/// Other methods: see `MethodRouting`.
struct HealthServer {
    /// Answered for any `Host`: probes use arbitrary names and get little information; `/feedback` is protected by its secret.
    private static let exemptPaths: Set = ["/healthz", "/readyz", "/feedback"]

    let address: NodeAPI.SocketAddress
    /// Host names allowed besides loopback names and the host of ``address``: ``HostPolicy``.
    let hostNames: [String]
    /// The VAPID public key in base64url; nil without Web Push.
    let webPushKey: String?
    /// nil if it is disabled.
    let feedback: FeedbackEndpoint?
    /// Why the node is not ready; empty if it is.
    let obstacles: @Sendable () -> [String]
    /// The body of `GET /metrics`.
    let metrics: @Sendable () async -> String
    let status: @Sendable () async -> PageFigures
    let search: SearchEndpoint
    /// Called with the port once the server listens.
    let bound: @Sendable (Int) -> Void
    let logger: Logger

    /// Serves until the task is cancelled or the process shuts down gracefully.
    ///
    /// - Throws: NIO's error for an address that can't be listened on.
    func run() async throws {
        let listener = HTTPListener(
            .hostname(address.host, port: address.port), limits: HTTPLimits(.status),
            hosts: HostPolicy(names: hostNames + [address.host]), exemptPaths: Self.exemptPaths, logger: logger)
        try await listener.run(routes.responder) { [bound] channel in
            if let port = channel.localAddress?.port { bound(port) }
        }
    }

    private var routes: Routes {
        var routes = Routes()
        routes.get("healthz") { _, _ in Response.text("ok\n") }
        routes.get("readyz") { [obstacles] _, _ in
            let obstacles = obstacles()
            let text = obstacles.isEmpty ? "ready\n" : obstacles.map { $0 + "\n" }.joined()
            return Response.text(text, obstacles.isEmpty ? .ok : .serviceUnavailable)
        }
        routes.get("metrics") { [metrics] _, _ in
            Response.guarded(ByteBuffer(string: await metrics()), MetricRegistry.contentType)
        }
        routes.get("") { [status] _, _ in
            Self.page(PageDocument(status: await status()).text)
        }
        routes.get("status.json") { [status] _, _ in
            Response.guarded(ByteBuffer(bytes: await status().json), Response.json)
        }
        if let webPushKey {
            routes.get("web-push") { _, _ in
                Response.guarded(ByteBuffer(string: "{\"key\":\"\(webPushKey)\"}\n"), Response.json)
            }
        }
        routes.post("search") { [search] in try await search.answer($0, $1) }
        if let feedback {
            routes.post("feedback") { request, _ in await feedback.answer(request) }
        }
        return routes
    }

    private static func page(_ text: String) -> Response {
        var response = Response.guarded(ByteBuffer(string: text), "text/html; charset=utf-8")
        response.headers[.contentSecurityPolicy] = PageDocument.contentSecurityPolicy
        response.add([
            "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin",
            "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        ])
        return response
    }
}

extension Response {
    static let json = "application/json; charset=utf-8"

    /// With headers that keep pages of other origins from embedding or misinterpreting the response.
    static func guarded(_ content: ByteBuffer, _ type: String, _ status: HTTPResponse.Status = .ok) -> Response {
        var response = Response(
            status: status, headers: [.contentType: type, .cacheControl: "no-store", .xContentTypeOptions: "nosniff"],
            body: .init(byteBuffer: content))
        response.add(["Cross-Origin-Resource-Policy": "same-origin"])
        return response
    }

    static func text(_ text: String, _ status: HTTPResponse.Status = .ok) -> Response {
        guarded(ByteBuffer(string: text), "text/plain; charset=utf-8", status)
    }

    fileprivate mutating func add(_ fields: [String: String]) {
        for (name, value) in fields {
            if let name = HTTPField.Name(name) { headers[name] = value }
        }
    }
}
