import HTTPTypes
import Hummingbird
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOHTTPTypes
import Testing

@testable import HTTPService

@Suite("HTTP/1.0 and Expect: 100-continue")
struct HTTPVersionTests {
    @Test(
        "A connection is marked to be closed if the client closes it, or does not keep it in HTTP/1.0, which expects no 100",
        arguments: [
            ("1.0", "", "close"), ("1.0", "Connection: keep-alive\r\n", "keep-alive"), ("1.0", "Connection: close\r\n", "close"),
            ("1.1", "", nil), ("1.1", "Connection: keep-alive\r\n", "keep-alive"), ("1.1", "Connection: Close\r\n", "close"),
            ("1.1", "Connection: close, TE\r\n", "close"), ("1.1", "Connection: TE\r\nConnection: close\r\n", "close"),
        ] as [(String, String, String?)])
    func connections(version: String, header: String, expected: String?) throws {
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: false)
        try RequestHeadHandler.add(to: channel.pipeline.syncOperations)
        try channel.writeInbound(
            ByteBuffer(string: "GET / HTTP/\(version)\r\nHost: localhost\r\nExpect: 100-continue\r\n\(header)\r\n"))
        guard case .head(let head)? = try channel.readInbound(as: HTTPServerRequestPart.self) else {
            Issue.record("no head")
            return
        }
        #expect(head.headers["connection"].first == expected)
        #expect(head.headers.contains(name: "expect") == (version == "1.1"))
        _ = try channel.finish()
    }

    @Test(
        "Heads that proxies may read differently are refused, and nothing behind them is read",
        arguments: [
            ("1.1", "Host: a\r\nhost: b\r\n", true), ("1.1", "Host: a\r\nTransfer-Encoding: chunked\r\n", false),
            ("1.1", "", true), ("1.0", "Host: a\r\nHost: a\r\n", true), ("1.0", "transfer-encoding: chunked\r\n", true), ("1.0", "", false),
            ("1.1", "Host: a\r\nTransfer-Encoding:  Chunked\r\n", false), ("1.1", "Host: a\r\nTransfer-Encoding: identity\r\n", true),
            ("1.1", "Host: a\r\nTransfer-Encoding: chunked;q=1\r\n", true), ("1.1", "Host: a\r\nTransfer-Encoding:\r\n", true),
            ("1.1", "Host: a\r\nTransfer-Encoding: gzip, chunked\r\n", true),
            ("1.1", "Host: a\r\nTransfer-Encoding: chunked\t\r\n", true),
        ] as [(String, String, Bool)])
    func refusedHeads(version: String, headers: String, isRefused: Bool) throws {
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: false)
        try RequestHeadHandler.add(to: channel.pipeline.syncOperations)
        let bytes = ByteBuffer(string: "GET / HTTP/\(version)\r\n\(headers)\r\n0\r\n\r\n")
        if isRefused {
            #expect(throws: HTTPParserError.self) { try channel.writeInbound(bytes) }
            #expect(try channel.readInbound(as: HTTPServerRequestPart.self) == nil)
        } else {
            _ = try? channel.writeInbound(bytes)
            guard case .head? = try channel.readInbound(as: HTTPServerRequestPart.self) else {
                Issue.record("no head")
                return
            }
        }
        _ = try? channel.finish()
    }

    @Test("A client that waits for 100 gets it once, when its body is read") func continues() async throws {
        let channel = NIOAsyncTestingChannel()
        for (expectation, count) in [("100-Continue", 1), ("something", 0)] {
            var head = HTTPRequest(method: .post, scheme: "http", authority: "localhost", path: "/")
            head.headerFields[try #require(HTTPField.Name("Expect"))] = expectation
            let request = Request(head: head, body: RequestBody(buffer: ByteBuffer(string: "body"))).continuing(on: channel)
            #expect(try await channel.readOutbound(as: HTTPResponsePart.self) == nil)
            var chunks = 0
            for try await _ in request.body { chunks += 1 }
            #expect(chunks == 1)
            var parts: [HTTPResponsePart] = []
            while let part = try await channel.readOutbound(as: HTTPResponsePart.self) { parts.append(part) }
            #expect(parts == Array(repeating: .head(HTTPResponse(status: .continue)), count: count))
        }
    }
}
