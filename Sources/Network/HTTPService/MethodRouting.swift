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
package struct MethodRouting<Base: HTTPResponder>: HTTPResponder {
    package typealias Context = Base.Context

    private let base: Base
    private let methods: @Sendable (_ path: String) -> [HTTPRequest.Method]

    /// - Parameters:
    ///   - base: answers the methods that a path has, and `GET` of paths that are not served.
    ///   - methods: those of a path as it was sent, without a query; empty for a path that is not served.
    package init(_ base: Base, methods: @escaping @Sendable (_ path: String) -> [HTTPRequest.Method]) {
        self.base = base
        self.methods = methods
    }

    package func respond(to request: Request, context: Context) async throws -> Response {
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
