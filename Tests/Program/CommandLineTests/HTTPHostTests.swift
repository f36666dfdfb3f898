import CurlClient
import Foundation
import TestSupport
import Testing

/// Allowed host names, and the headers of the status page.
@Suite(.timeLimit(.minutes(5)))
struct HTTPHostTests {
    private let node: OperatedNode
    private let client = CurlClient()

    init() throws {
        node = try OperatedNode()
    }

    private func status(_ url: String, host: String, method: String = "GET") async throws -> Int {
        try await client.send(HTTPRequest(method: method, url: url, headers: [("Host", host)])).status
    }

    /// A page whose host name resolves to the daemon can't read anything.
    @Test func requestsForOtherHostNamesAreMisdirected() async throws {
        defer { node.gorush.stop() }
        let secret = node.folder.path + "/secret"
        try write("0123456789abcdef0123", to: secret)
        let daemon = try await node.start("--http-host", "push.example", "--http-host", "waku-push", "--feedback-secret-file", secret)
        for path in ["/", "/status.json", "/metrics", "/nothing"] {
            for host in ["evil.example", "evil.example:9090", "localhost.evil.example"] {
                #expect(try await status(daemon.httpURL + path, host: host) == 421, "\(path) \(host)")
            }
            let found = path == "/nothing" ? 404 : 200
            for host in ["localhost", "127.0.0.1:9090", "[::1]:9090", "192.0.2.7", "push.example", "WAKU-PUSH:9090"] {
                #expect(try await status(daemon.httpURL + path, host: host) == found, "\(path) \(host)")
            }
        }
        #expect(try await status(daemon.httpURL + "/healthz", host: "evil.example") == 200)
        #expect(try await status(daemon.httpURL + "/readyz", host: "evil.example") == 200)
        // It has its secret.
        #expect(try await status(daemon.httpURL + "/feedback", host: "evil.example", method: "POST") == 401)

        let relay = daemon.relayURL + "/health"
        #expect(try await status(relay, host: "evil.example") == 421)
        for host in ["localhost", "127.0.0.1:8645", "push.example"] { #expect(try await status(relay, host: host) == 200) }
        #expect(await daemon.stop().status == 0)
    }

    @Test func thePageHasProtectiveHeaders() async throws {
        defer { node.gorush.stop() }
        let daemon = try await node.start()
        let page = try await daemon.get("/")
        #expect(page.header("Content-Security-Policy")?.hasPrefix("default-src 'none'; ") == true)
        #expect(page.header("Content-Security-Policy")?.contains("frame-ancestors 'none'") == true)
        for (name, value) in [
            ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Opener-Policy", "same-origin"), ("Cross-Origin-Resource-Policy", "same-origin"), ("Cache-Control", "no-store"),
        ] {
            #expect(page.header(name) == value, "\(name)")
        }
        for path in ["/status.json", "/metrics"] {
            let answer = try await daemon.get(path)
            #expect(answer.header("X-Content-Type-Options") == "nosniff")
            #expect(answer.header("Cross-Origin-Resource-Policy") == "same-origin")
        }
        #expect(await daemon.stop().status == 0)
    }
}
