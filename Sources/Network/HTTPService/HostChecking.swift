import HTTPTypes
import Hummingbird
import NIOCore

/// Answers 421 to requests whose `Host` header the ``HostPolicy`` denies.
struct HostChecking<Base: HTTPResponder>: HTTPResponder {
    typealias Context = Base.Context

    let base: Base
    /// nil accepts any `Host`.
    let hosts: HostPolicy?
    /// Answered for any `Host`.
    let exemptPaths: Set<String>

    func respond(to request: Request, context: Context) async throws -> Response {
        guard let hosts, !hosts.permits(request.head.authority), !exemptPaths.contains(request.uri.path) else {
            return try await base.respond(to: request, context: context)
        }
        return Response(
            status: .misdirectedRequest, headers: [.contentType: "text/plain; charset=utf-8"],
            body: .init(byteBuffer: ByteBuffer(string: "this name is not served here: add it by --http-host NAME, or use an IP address\n")))
    }
}
