import CurlClient
import Foundation
import Synchronization
import TestSupport
import Testing

/// Failures of requests, and the errors thrown for them.
struct CurlClientFailureTests {
    @Test func aServerThatHangs() async throws {
        let server = try RawHTTPServer { _ in .hang }
        defer { server.stop() }
        let error = try await failure(of: HTTPRequest(url: server.url, timeout: .milliseconds(50)))
        #expect(error.code == .timeout)
    }

    @Test func waitingInTheQueueTimesOut() async throws {
        let line = try await Line(waiting: 0)
        defer { line.server.stop() }
        line.first.cancel()
        #expect(try await line.first.value.code == .cancelled)
        #expect(line.server.requests.count == 1)
    }

    @Test func queuedRequestsCanBeCancelled() async throws {
        let line = try await Line(waiting: 20)
        defer { line.server.stop() }
        for task in line.others { task.cancel() }
        for task in line.others { #expect(try await task.value.code == .cancelled) }
        line.first.cancel()
        #expect(try await line.first.value.code == .cancelled)
        // The connection is free, and no cancelled request took it.
        #expect(try await line.client.send(longTimeoutRequest(url: line.server.url)).status == 200)
        #expect(line.server.requests.count == 2)
    }

    @Test func shutdownEndsQueuedRequests() async throws {
        let line = try await Line(waiting: 20)
        defer { line.server.stop() }
        line.client.shutdown()
        for task in [line.first] + line.others { #expect(try await task.value.code == .cancelled) }
        #expect(line.server.requests.count == 1)
    }

    /// A request that hangs on the only connection, and others waiting for it.
    private struct Line {
        let client = CurlClient(configuration: CurlConfiguration(maximumConnectionsPerHost: 1))
        let server: RawHTTPServer
        let first: Task<HTTPError, any Error>
        let others: [Task<HTTPError, any Error>]

        init(waiting count: Int) async throws {
            let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
            let server = try RawHTTPServer { request in
                guard request.head.hasPrefix("GET /first ") else { return .status(200) }
                arrival.yield()
                return .hang
            }
            let client = client
            first = Task { try await failure(of: longTimeoutRequest(url: server.url + "/first"), client: client) }
            for await _ in arrived { break }
            others = (0..<count).map { _ in Task { try await failure(of: longTimeoutRequest(url: server.url), client: client) } }
            // When this request has timed out, the others are queued.
            let last = try await failure(of: HTTPRequest(url: server.url, timeout: .milliseconds(50)), client: client)
            #expect(last.code == .timeout)
            self.server = server
        }
    }

    @Test func nobodyListens() async throws {
        let closed = try ReservedPort()
        let error = try await failure(of: longTimeoutRequest(url: "http://127.0.0.1:\(closed.number)/path?secret"))
        #expect(error.code == .connect)
        #expect(!error.message.contains("secret"))
    }

    @Test func aNameWithoutAddress() async throws {
        #expect(try await failure(of: longTimeoutRequest(url: "http://gorush.invalid/")).code == .resolve)
    }

    @Test("A body is sent again over another connection only if the request is repeatable", arguments: [true, false])
    func reusedConnectionEnds(isRepeatable: Bool) async throws {
        let server = try RawHTTPServer { $0.connection == 0 && $0.body == [2] ? .last([]) : .status(200) }
        defer { server.stop() }
        let client = CurlClient(configuration: CurlConfiguration())
        var request = longTimeoutRequest(url: server.url)
        (request.method, request.isRepeatable) = ("POST", isRepeatable)
        for number in [1, 2] as [UInt8] {
            request.body = [number]
            if number == 1 || isRepeatable {
                #expect(try await client.send(request).status == 200)
            } else {
                #expect(try await failure(of: request, client: client).code == .interrupted)
            }
        }
        #expect(server.requests.map(\.body) == (isRepeatable ? [[1], [2], [2]] : [[1], [2]]))
        #expect(server.requests[1].connection == 0)
    }

    private final class Stopper: Sendable {
        let server = Mutex<RawHTTPServer?>(nil)
    }

    @Test("The end of a reused connection and of its server is not a failure to connect, and the next request succeeds")
    func reusedConnectionEndsWithItsServer() async throws {
        let stopper = Stopper()
        let server = try RawHTTPServer { request in
            guard request.body == [2] else { return .status(200) }
            stopper.server.withLock { $0?.stop() }
            return .last([])
        }
        stopper.server.withLock { $0 = server }
        let next = try RawHTTPServer { _ in .status(200) }
        defer { next.stop() }
        let client = CurlClient(configuration: CurlConfiguration())
        func request(_ server: RawHTTPServer, _ body: UInt8) -> HTTPRequest {
            var request = longTimeoutRequest(url: server.url)
            (request.method, request.isRepeatable, request.body) = ("POST", false, [body])
            return request
        }
        #expect(try await client.send(request(server, 1)).status == 200)
        #expect(try await failure(of: request(server, 2), client: client).code == .interrupted)
        #expect(try await client.send(request(next, 3)).status == 200)
        #expect(server.requests.map(\.body) == [[1], [2]] && next.requests.map(\.body) == [[3]])
    }

    @Test("A body of several reads arrives complete, also on a reused connection")
    func unrepeatableBody() async throws {
        let server = try RawHTTPServer { _ in .status(200) }
        defer { server.stop() }
        let client = CurlClient(configuration: CurlConfiguration())
        var request = longTimeoutRequest(url: server.url)
        (request.method, request.isRepeatable) = ("POST", false)
        let bodies = [0, 1, 300_000, 65_536].map { count in (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) } }
        for body in bodies {
            request.body = body
            #expect(try await client.send(request).status == 200)
        }
        #expect(server.requests.map(\.body) == bodies && server.requests.last?.connection == 0)
    }

    @Test func bodiesAreBounded() async throws {
        let server = try RawHTTPServer { _ in .status(200, body: String(repeating: "a", count: 1001)) }
        defer { server.stop() }
        let client = CurlClient()
        let error = try await failure(of: longTimeoutRequest(url: server.url, maximumResponseByteCount: 1000), client: client)
        #expect(error.code == .tooLarge)
        let response = try await client.send(longTimeoutRequest(url: server.url, maximumResponseByteCount: 1001))
        #expect(response.body.count == 1001)
        var request = longTimeoutRequest(url: server.url, maximumResponseByteCount: 1000)
        request.cutsLongResponses = true
        let cut = try await client.send(request)
        #expect(cut.status == 200 && cut.body.count == 1000)
    }

    @Test("The status counts although the body does not end, or breaks off, for requests that need no more")
    func bodiesWithoutEnd() async throws {
        let head = "HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\nshort"
        let server = try RawHTTPServer { request in
            switch request.head.split(separator: " ")[1] {
            case "/broken": .reset(Array(head.utf8))
            case "/head": .bytes(Array("HTTP/1.1 201 Created\r\nContent-Le".utf8))
            case "/interim": .bytes(Array("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n".utf8))
            default: .bytes(Array(head.utf8))
            }
        }
        defer { server.stop() }
        let client = CurlClient()
        func request(_ path: String, cuts: Bool) -> HTTPRequest {
            HTTPRequest(url: server.url + path, timeout: .milliseconds(300), cutsLongResponses: cuts)
        }
        for path in ["/endless", "/broken"] {
            let response = try await client.send(request(path, cuts: true))
            #expect(response.status == 201 && response.header("Content-Length") == "10" && response.body == Array("short".utf8))
        }
        #expect(try await failure(of: request("/endless", cuts: false), client: client).code == .timeout)
        for path in ["/head", "/interim"] {
            #expect(try await failure(of: request(path, cuts: true), client: client).code == .timeout)
        }
    }

    @Test(arguments: [300, 100_000])
    func headersAreBounded(count: Int) async throws {
        // Either many short ones, or some long ones.
        let header = count == 300 ? "A: b" : "A: " + String(repeating: "b", count: 1000)
        let server = try RawHTTPServer { _ in .status(200, headers: Array(repeating: header, count: min(count, 300))) }
        defer { server.stop() }
        #expect(try await failure(of: longTimeoutRequest(url: server.url)).code == .tooLarge)
    }

    @Test func repliesThatAreNotHTTP() async throws {
        let server = try RawHTTPServer { _ in .last(Array("SSH-2.0-OpenSSH_9.2\r\n".utf8)) }
        defer { server.stop() }
        let error = try await failure(of: longTimeoutRequest(url: server.url))
        #expect(error.code == .other)
        #expect(!error.message.contains("SSH"))
    }

    @Test(arguments: [
        RawHTTPServer.Reply.last([]), .reset([]), .reset(Array("HTTP/1.1 200 OK\r\nContent-Le".utf8)),
        .last(Array("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort".utf8)),
        .reset(Array("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort".utf8)),
    ])
    func connectionsThatBreak(reply: RawHTTPServer.Reply) async throws {
        let server = try RawHTTPServer { _ in reply }
        defer { server.stop() }
        #expect(try await failure(of: longTimeoutRequest(method: "POST", url: server.url, body: [1])).code == .interrupted)
    }

    @Test func activeRequestsCanBeCancelled() async throws {
        let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
        let server = try RawHTTPServer { _ in
            arrival.yield()
            return .hang
        }
        defer { server.stop() }
        let client = CurlClient()
        let task = Task { try await failure(of: HTTPRequest(url: server.url, timeout: .seconds(60)), client: client) }
        for await _ in arrived { break }
        task.cancel()
        #expect(try await task.value.code == .cancelled)
    }

    @Test func requestsOfACancelledTaskAreCancelled() async throws {
        let client = CurlClient()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await failure(of: longTimeoutRequest(url: "http://127.0.0.1:9/"), client: client)
        }
        #expect(try await task.value.code == .cancelled)
    }

    @Test func shutDown() async throws {
        let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
        let server = try RawHTTPServer { _ in
            arrival.yield()
            return .hang
        }
        defer { server.stop() }
        let client = CurlClient()
        let task = Task { try await failure(of: HTTPRequest(url: server.url, timeout: .seconds(60)), client: client) }
        for await _ in arrived { break }
        client.shutdown()
        client.shutdown()
        #expect(try await task.value.code == .cancelled)
        #expect(try await failure(of: longTimeoutRequest(url: server.url), client: client).code == .cancelled)
    }

    @Test(arguments: [
        "", "127.0.0.1", "file:///etc/hostname", "ftp://127.0.0.1/", "http://", "http://user:word@127.0.0.1/", "http://a b/",
        "http://a\0b/",
        "http://a\r\nX: 1/", "http://127.0.0.1:99999/",
    ])
    func badURLs(url: String) async throws {
        let error = try await failure(of: longTimeoutRequest(url: url))
        #expect(error.code == .badURL)
        #expect(!error.message.contains("word"))
    }

    @Test(
        "A header by settings is one of HTTP, and not one that libcurl sets by itself",
        arguments: [
            ("X-Api-Key: a b", true), ("Host: push.example", true), ("no colon", false), ("A B: c", false), (": c", false),
            ("A: b\u{7}", false),
            ("Content-Length: 1", false), ("transfer-encoding: chunked", false), ("Connection:close", false),
        ])
    func settings(line: String, isHeader: Bool) {
        #expect((CurlConfiguration.header(parsing: line) != nil) == isHeader)
    }

    @Test func headersAndMethodsCannotInjectLines() async throws {
        let server = try RawHTTPServer { _ in .status(200) }
        defer { server.stop() }
        let requests = [
            longTimeoutRequest(url: server.url, headers: [("A", "b\r\nC: d")]),
            longTimeoutRequest(url: server.url, headers: [("A: b\r\nC", "d")]),
            longTimeoutRequest(url: server.url, headers: [("", "d")]), longTimeoutRequest(method: "GET / HTTP/1.1\r\nA:", url: server.url),
        ]
        for request in requests { #expect(try await failure(of: request).code == .other) }
        let agent = CurlClient(configuration: CurlConfiguration(userAgent: "a\r\nB: c"))
        #expect(try await failure(of: longTimeoutRequest(url: server.url), client: agent).code == .other)
        #expect(server.requests.isEmpty)
    }
}

private func failure(
    of request: HTTPRequest, client: CurlClient = CurlClient(), _ location: SourceLocation = #_sourceLocation
) async throws -> HTTPError {
    try await #require(throws: HTTPError.self, sourceLocation: location) { try await client.send(request) }
}
