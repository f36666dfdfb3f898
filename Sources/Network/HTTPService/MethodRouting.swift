package import HTTPTypes
package import Hummingbird
import NIOCore

/// Answers the methods that a path does not handle itself, the same on each listener:
///
/// | request | response |
/// |---|---|
/// | a method of the path | the path's own |
/// | `HEAD` on a path with `GET` | the response to `GET`, without its body |
/// | `OPTIONS` | 204 with `Allow` |
/// | any other method | 405 with `Allow` |
/// | a path that is not served | 404 |
///
/// Scripts of web pages of any origin may use the paths that say so: their responses have the headers of the Fetch standard's CORS protocol, and
/// `OPTIONS` answers its preflight requests.
package struct MethodRouting<Base: HTTPResponder>: HTTPResponder {
    package typealias Context = Base.Context

    private let base: Base
    private let methods: @Sendable (_ path: String) -> [HTTPRequest.Method]
    private let isOpenToPages: @Sendable (_ path: String) -> Bool

    /// - Parameters:
    ///   - base: answers the methods that a path has, and `GET` of paths that are not served.
    ///   - methods: those of a path as it was sent, without a query; empty for a path that is not served.
    ///   - isOpenToPages: whether pages of any origin may use a path: one whose answers don't depend on cookies or other credentials of a browser.
    package init(
        _ base: Base, methods: @escaping @Sendable (_ path: String) -> [HTTPRequest.Method],
        isOpenToPages: @escaping @Sendable (_ path: String) -> Bool = { _ in false }
    ) {
        self.base = base
        self.methods = methods
        self.isOpenToPages = isOpenToPages
    }

    package func respond(to request: Request, context: Context) async throws -> Response {
        var response = try await answer(request, context: context)
        guard isOpenToPages(request.uri.path) else { return response }
        response.headers[.accessControlAllowOrigin] = "*"
        if request.method == .options {
            response.headers[.accessControlAllowMethods] = response.headers[.allow]
            response.headers[.accessControlAllowHeaders] = "Content-Type"
        } else {
            response.headers[.accessControlExposeHeaders] = "Retry-After"
        }
        return response
    }

    private func answer(_ request: Request, context: Context) async throws -> Response {
        guard request.method == .head else { return try await respond(to: request, context: context, methods(request.uri.path)) }
        let methods = methods(request.uri.path)
        var head = request.head
        if methods.isEmpty || methods.contains(.get) { head.method = .get }
        return try await respond(to: Request(head: head, body: request.body), context: context, methods).createHeadResponse()
    }

    private func respond(to request: Request, context: Context, _ methods: [HTTPRequest.Method]) async throws -> Response {
        if methods.isEmpty || methods.contains(request.method) { return try await base.respond(to: request, context: context) }
        let allowed = (methods + (methods.contains(.get) ? [.head] : [])).map(\.rawValue).joined(separator: ", ")
        guard request.method != .options else { return Response(status: .noContent, headers: [.allow: allowed]) }
        return Response(
            status: .methodNotAllowed, headers: [.allow: allowed, .contentType: "text/plain; charset=utf-8"],
            body: .init(byteBuffer: ByteBuffer(string: "methods of this path: \(allowed)\n")))
    }
}
