import HTTPTypes
package import Hummingbird
import NIOCore

/// Fixed paths with their methods. Other methods of these paths, and other paths, are answered by ``MethodRouting``.
///
/// Paths match as they are sent: `//metrics`, `/metrics/` and `/%6detrics` are not served, as a proxy in front may have rules for `/metrics` alone.
package struct Routes: HTTPResponder {
    private typealias Handler = @Sendable (Request, PeerContext) async throws -> Response

    private var handlers: [String: [HTTPRequest.Method: Handler]] = [:]

    package init() {}

    /// - Parameter path: without the leading slash.
    package mutating func get(
        _ path: String, _ handler: @escaping @Sendable (Request, PeerContext) async throws -> some ResponseGenerator
    ) {
        add(path, .get, handler)
    }

    /// - Parameter path: without the leading slash.
    package mutating func post(
        _ path: String, _ handler: @escaping @Sendable (Request, PeerContext) async throws -> some ResponseGenerator
    ) {
        add(path, .post, handler)
    }

    private mutating func add(
        _ path: String, _ method: HTTPRequest.Method,
        _ handler: @escaping @Sendable (Request, PeerContext) async throws -> some ResponseGenerator
    ) {
        handlers["/" + path, default: [:]][method] = { request, context in
            try await handler(request, context).response(from: request, context: context)
        }
    }

    package func respond(to request: Request, context: PeerContext) async throws -> Response {
        guard let handler = handlers[request.uri.path]?[request.method] else { return Response(status: .notFound) }
        do {
            return try await handler(request, context)
        } catch let error as any HTTPResponseError {
            return try error.response(from: request, context: context)
        }
    }

    package var responder: MethodRouting<Routes> {
        MethodRouting(self) { [handlers] path in handlers[path].map { Array($0.keys) } ?? [] }
    }
}
