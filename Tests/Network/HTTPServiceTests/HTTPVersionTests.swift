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
        """
        A connection is marked to be closed if the client closes it, does not keep it in HTTP/1.0, which expects no 100, or offers another protocol
        """,
        arguments: [
            ("1.0", "", "close"), ("1.0", "Connection: keep-alive\r\n", "keep-alive"), ("1.0", "Connection: close\r\n", "close"),
            ("1.1", "", nil), ("1.1", "Connection: keep-alive\r\n", "keep-alive"), ("1.1", "Connection: Close\r\n", "close"),
            ("1.1", "Connection: close, TE\r\n", "close"), ("1.1", "Connection: TE\r\nConnection: close\r\n", "close"),
            ("1.1", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n", "close"),
            ("1.0", "Connection: keep-alive, upgrade\r\nupgrade: websocket\r\n", "close"), ("1.1", "Upgrade: h2c\r\n", "close"),
            ("1.1", "Connection: upgrade\r\n", "upgrade"),
        ] as [(String, String, String?)])
    func connections(version: String, header: String, expected: String?) throws {
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: false)
        try RequestHeadHandler.add(to: channel.pipeline.syncOperations, InputScheduler(on: channel.eventLoop))
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
        try RequestHeadHandler.add(to: channel.pipeline.syncOperations, InputScheduler(on: channel.eventLoop))
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

    @Test(
        "Bytes after the last request of a connection do not reach the decoder, which would keep them after an offer of another protocol",
        arguments: [
            ("GET /", "Connection: upgrade\r\nUpgrade: h2c\r\n\r\n"), ("CONNECT a:443", "\r\n"), ("GET /", "Connection: close\r\n\r\n"),
            ("POST /", "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 4\r\n\r\nbody"),
            ("POST /", "Upgrade: x\r\nConnection: TE,upgrade\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"),
        ])
    func bytesAfterTheLastRequest(target: String, rest: String) throws {
        let channel = EmbeddedChannel()
        let pipeline = channel.pipeline.syncOperations
        try pipeline.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: false)
        try RequestHeadHandler.add(to: pipeline, InputScheduler(on: channel.eventLoop))
        let counter = ByteCounter()
        try pipeline.addHandler(counter, position: .before(pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)))
        let request = "GET /first HTTP/1.1\r\nHost: localhost\r\n\r\n\(target) HTTP/1.1\r\nHost: localhost\r\n\(rest)"
        // In pieces, as a body is read while more of it arrives.
        for piece in [request.prefix(70), request.dropFirst(70)] { try channel.writeInbound(ByteBuffer(string: String(piece))) }
        for _ in 0..<256 { try channel.writeInbound(ByteBuffer(repeating: UInt8(ascii: "x"), count: 4096)) }
        #expect(counter.count == request.utf8.count)
        var kinds = ""
        while let part = try channel.readInbound(as: HTTPServerRequestPart.self) {
            switch part {
            case .head(let head): kinds += head.headers["connection"] == ["close"] ? "last " : "head "
            case .body(let body): kinds += String(buffer: body)
            case .end: kinds += " end "
            }
        }
        #expect(kinds == "head  end last \(rest.contains("body") ? "body" : "") end ")
        _ = try channel.finish()
    }

    @Test(
        "A request behind an offer of another protocol is not handled, whether the decoder stops or not",
        arguments: ["Connection: upgrade\r\n", ""])
    func requestBehindAnOffer(header: String) throws {
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: false)
        try RequestHeadHandler.add(to: channel.pipeline.syncOperations, InputScheduler(on: channel.eventLoop))
        let offer = "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\n\(header)\r\n"
        try channel.writeInbound(ByteBuffer(string: offer + "GET /second HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        var count = 0
        while try channel.readInbound(as: HTTPServerRequestPart.self) != nil { count += 1 }
        #expect(count == 2)
        _ = try channel.finish()
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

private final class ByteCounter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private(set) var count = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        count += unwrapInboundIn(data).readableBytes
        context.fireChannelRead(data)
    }
}
