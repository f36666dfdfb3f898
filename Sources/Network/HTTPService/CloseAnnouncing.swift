import HTTPTypes
import Hummingbird

/// Says in the response that the connection closes after it (RFC 9112 section 9.6), so that the client sends its next request on another one.
struct CloseAnnouncing<Base: HTTPResponder>: HTTPResponder {
    typealias Context = Base.Context

    let base: Base

    func respond(to request: Request, context: Context) async throws -> Response {
        var response = try await base.respond(to: request, context: context)
        if request.headers[.connection] == "close" { response.headers[.connection] = "close" }
        return response
    }
}
