import CurlClient
import TestSupport
import Testing

/// Tests with a server on 127.0.0.1.
struct CurlClientTests {
    @Test func responsesHaveStatusHeadersAndBody() async throws {
        let server = try RawHTTPServer { _ in .status(500, headers: ["X-Some:  value \t", "x-some: other"], body: "late") }
        defer { server.stop() }
        let response = try await CurlClient().send(longTimeoutRequest(url: server.url + "/a?b=c"))
        #expect(response.status == 500)
        #expect(response.header("x-SOME") == "value")
        #expect(response.header("X-None") == nil)
        #expect(response.body == Array("late".utf8))
        #expect(server.requests.first?.head.hasPrefix("GET /a?b=c HTTP/1.1\r\n") == true)
    }

    @Test func connectionsAreReused() async throws {
        let server = try RawHTTPServer { _ in .status(200) }
        defer { server.stop() }
        let client = CurlClient()
        for _ in 0..<20 { _ = try await client.send(longTimeoutRequest(method: "POST", url: server.url, body: [1])) }
        #expect(server.requests.map(\.connection) == Array(repeating: 0, count: 20))
    }

    @Test func connectionsPerHostAreLimited() async throws {
        let server = try RawHTTPServer { _ in .status(200) }
        defer { server.stop() }
        let client = CurlClient(configuration: CurlConfiguration(maximumConnectionsPerHost: 3))
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<100 { group.addTask { try await client.send(longTimeoutRequest(url: server.url)).status } }
            for try await status in group { #expect(status == 200) }
        }
        #expect(server.requests.count == 100)
        #expect(server.requests.allSatisfy { $0.connection < 3 })
    }

    @Test(arguments: [nil, "", "{\"a\":\0}", String(repeating: "7", count: 300_000)])
    func bodiesAreTransferredUnchanged(text: String?) async throws {
        let body = text.map { Array($0.utf8) }
        let server = try RawHTTPServer { _ in .status(200) }
        defer { server.stop() }
        _ = try await CurlClient().send(
            longTimeoutRequest(
                method: "POST", url: server.url, headers: [("Content-Type", "application/json"), ("X-Empty", "")], body: body))
        let request = try #require(server.requests.first)
        #expect(request.body == body ?? [])
        #expect(request.header("Content-Length") == "\(body?.count ?? 0)")
        #expect(request.header("Content-Type") == "application/json")
        #expect(request.header("Expect") == nil)
        #expect(request.head.contains("X-Empty:"))
    }

    @Test func otherMethodsAreSent() async throws {
        let server = try RawHTTPServer { _ in .status(200) }
        defer { server.stop() }
        let client = CurlClient()
        _ = try await client.send(longTimeoutRequest(method: "DELETE", url: server.url))
        _ = try await client.send(longTimeoutRequest(method: "PUT", url: server.url, body: [1, 2]))
        _ = try await client.send(longTimeoutRequest(method: "HEAD", url: server.url))
        #expect(server.requests.map { $0.head.prefix { $0 != " " } } == ["DELETE", "PUT", "HEAD"])
        #expect(server.requests[1].body == [1, 2])
        // By default libcurl would label the body as a form.
        #expect(server.requests.allSatisfy { $0.header("Content-Type") == nil })
    }

    @Test func credentialsAndHeadersOfTheClientAreSent() async throws {
        let server = try RawHTTPServer { _ in .status(200) }
        defer { server.stop() }
        let basic = CurlConfiguration(credentials: .basic(user: "Aladdin", password: "open sesame"), userAgent: "an agent")
        let bearer = CurlConfiguration(credentials: .bearer(token: "abc.def"), headers: [("X-Extra", "1")])
        _ = try await CurlClient(configuration: basic).send(longTimeoutRequest(url: server.url))
        _ = try await CurlClient(configuration: bearer).send(longTimeoutRequest(url: server.url))
        _ = try await CurlClient().send(longTimeoutRequest(url: server.url))
        #expect(server.requests.map { $0.header("Authorization") } == ["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Bearer abc.def", nil])
        #expect(server.requests.map { $0.header("X-Extra") } == [nil, "1", nil])
        #expect(server.requests.first?.header("User-Agent") == "an agent")
    }

    @Test func redirectsAreResponses() async throws {
        let server = try RawHTTPServer { _ in .status(302, headers: ["Location: /elsewhere"]) }
        defer { server.stop() }
        #expect(try await CurlClient().send(longTimeoutRequest(url: server.url)).status == 302)
        #expect(server.requests.count == 1)
    }

    @Test func interimResponsesAreSkipped() async throws {
        let server = try RawHTTPServer { _ in
            .bytes(Array("HTTP/1.1 103 Early Hints\r\nA: 1\r\n\r\nHTTP/1.1 204 No Content\r\nB: 2\r\n\r\n".utf8))
        }
        defer { server.stop() }
        let response = try await CurlClient().send(longTimeoutRequest(url: server.url))
        #expect(response.status == 204)
        #expect(response.header("A") == nil)
        #expect(response.header("B") == "2")
    }

    @Test func manyAtOnce() async throws {
        let server = try RawHTTPServer { .status(200, body: String(decoding: $0.body, as: UTF8.self)) }
        defer { server.stop() }
        let client = CurlClient()
        await withTaskGroup(of: Bool.self) { group in
            for number in 0..<500 {
                group.addTask {
                    let body = Array("\(number)".utf8)
                    return (try? await client.send(longTimeoutRequest(method: "POST", url: server.url, body: body)))?.body == body
                }
            }
            for await echoed in group { #expect(echoed) }
        }
    }

    @Test func nothingOfASecretIsPrinted() {
        let configuration = CurlConfiguration(credentials: .basic(user: "u", password: "sesame"), headers: [("X-Key", "sesame")])
        let request = HTTPRequest(url: "http://h/?sesame", headers: [("Cookie", "sesame")], body: Array("sesame".utf8))
        var text = "\(configuration) \(request) \(HTTPCredentials.bearer(token: "sesame")) "
        dump((configuration, request, configuration.credentials), to: &text)
        #expect(!text.contains("sesame"))
        #expect("\(configuration.credentials)" == "<redacted>")
    }
}
