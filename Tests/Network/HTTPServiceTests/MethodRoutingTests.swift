import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import HTTPService

@Suite struct MethodRoutingTests {
    private func respond(_ method: String, _ path: String) async throws -> (status: Int, allow: String?, type: String?, byteCount: Int) {
        let response = try await response(method, path)
        return (response.status.code, response.headers[.allow], response.headers[.contentType], response.body.contentLength ?? 0)
    }

    private func response(_ method: String, _ path: String) async throws -> Response {
        var routes = Routes()
        routes.get("healthz") { _, _ in
            Response(status: .ok, headers: [.contentType: "text/plain"], body: .init(byteBuffer: ByteBuffer(string: "ok")))
        }
        routes.get("") { _, _ in Response(status: .ok, body: .init(byteBuffer: ByteBuffer(string: "page"))) }
        routes.post("feedback") { _, _ in Response(status: .accepted) }
        return try await response(method, path, routes.responder)
    }

    private func response(_ method: String, _ path: String, _ responder: some HTTPResponder<PeerContext>) async throws -> Response {
        let method = try #require(HTTPRequest.Method(rawValue: method))
        let request = Request(
            head: HTTPRequest(method: method, scheme: "http", authority: "localhost", path: path), body: RequestBody(buffer: ByteBuffer()))
        let context = PeerContext(
            source: ApplicationRequestContextSource(channel: EmbeddedChannel(), logger: Logger(label: "") { _ in SwiftLogNoOpLogHandler() })
        )
        return try await responder.respond(to: request, context: context)
    }

    @Test(arguments: ["/healthz", "/", "/healthz?verbose=1"]) func headIsGetWithoutBody(path: String) async throws {
        let (head, get) = (try await respond("HEAD", path), try await respond("GET", path))
        #expect(head.status == 200 && head.type == get.type && head.byteCount == 0 && get.byteCount > 0)
    }

    @Test func optionsNamesTheMethods() async throws {
        for (path, allow) in [("/healthz", "GET, HEAD"), ("/feedback", "POST")] {
            let response = try await respond("OPTIONS", path)
            #expect(response.status == 204 && response.allow == allow && response.byteCount == 0)
        }
    }

    @Test func pagesOfOtherOriginsMayUseOnlyPathsThatAreOpenToThem() async throws {
        var routes = Routes()
        routes.get("key") { _, _ in Response(status: .ok) }
        routes.get("") { _, _ in Response(status: .ok) }
        let routing = MethodRouting(routes) {
            ["/", "/key"].contains($0) ? [.get] : []
        } isOpenToPages: {
            $0 == "/key"
        }
        for method in ["GET", "HEAD", "OPTIONS", "POST"] {
            #expect(try await response(method, "/key?v=1", routing).headers[.accessControlAllowOrigin] == "*")
            for path in ["/", "/feedback", "/key/"] {
                #expect(try await !response(method, path, routing).headers.contains { $0.name.canonicalName.hasPrefix("access-control") })
            }
        }
        let preflight = try await response("OPTIONS", "/key", routing).headers
        #expect(preflight[.accessControlAllowMethods] == "GET, HEAD" && preflight[.accessControlAllowHeaders] == "Content-Type")
        #expect(try await response("GET", "/key", routing).headers[.accessControlExposeHeaders] == "Retry-After")
    }

    @Test(arguments: [
        ("POST", "/healthz", "GET, HEAD"), ("DELETE", "/", "GET, HEAD"), ("GET", "/feedback", "POST"), ("HEAD", "/feedback", "POST"),
    ])
    func otherMethodsAreNotAllowed(method: String, path: String, allow: String) async throws {
        let response = try await respond(method, path)
        #expect(response.status == 405 && response.allow == allow)
    }

    @Test(arguments: ["GET", "HEAD", "OPTIONS", "POST", "DELETE"]) func otherPathsAreNotFound(method: String) async throws {
        #expect(try await respond(method, "/nothing").status == 404)
        #expect(try await respond(method, "/feedback/x").status == 404)
        // Other spellings of a path that is served, which a proxy's rules for it may not cover.
        for path in ["//healthz", "/healthz/", "/%68ealthz", "/x/../healthz", "//"] {
            #expect(try await respond(method, path).status == 404, "\(path)")
        }
    }
}
