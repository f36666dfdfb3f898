import Foundation
import Hummingbird
import Logging
import NIOCore
import Synchronization
import TestSupport
import Testing

@testable import HTTPService

@Suite("HTTP listener", .timeLimit(.minutes(2)))
struct HTTPListenerTests {
    /// As curl's `--http2` and Java's HttpClient do with each request over plain HTTP.
    @Test(
        "Clients that offer another protocol get their responses, each on a connection that closes after it",
        arguments: ["GET / HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n", "CONNECT localhost:443 HTTP/1.1\r\n"])
    func offersOfOtherProtocols(head: String) async throws {
        let quiet = Logger(label: "http") { _ in SwiftLogNoOpLogHandler() }
        let listener = HTTPListener(.hostname("127.0.0.1", port: 0), limits: HTTPLimits(connections: 4), hosts: nil, logger: quiet)
        var routes = Routes()
        routes.get("") { _, _ in Response(status: .ok) }
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let running = Task { [routes] in try await listener.run(routes.responder) { port.yield($0.localAddress?.port ?? 0) } }
        let number = try #require(await ports.first { _ in true })
        let plain = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for _ in 0..<2 {
            let client = try RawConnection(port: UInt16(number), sending: "\(plain)\(head)Host: localhost\r\n\r\n\(plain)")
            var text = ""
            try await eventually { client.receive(into: &text) }
            let responses = text.components(separatedBy: "HTTP/1.1 ").dropFirst()
            #expect(responses.map { $0.prefix(3) } == ["200", head.hasPrefix("GET") ? "200" : "404"])
            #expect(responses.map { $0.lowercased().contains("connection: close\r\n") } == [false, true])
        }
        running.cancel()
        try await running.value
    }

    /// Each connection has 50 turns of requests, and the other client waits for a few of each.
    @Test("Clients that send requests without waiting for responses do not delay others") func pipelinedRequests() async throws {
        let quiet = Logger(label: "http") { _ in SwiftLogNoOpLogHandler() }
        let listener = HTTPListener(.hostname("127.0.0.1", port: 0), limits: HTTPLimits(connections: 64), hosts: nil, logger: quiet)
        let answered = Atomic<Int>(0)
        let answeredBefore = Atomic<Int>(0)
        var routes = Routes()
        routes.get("") { _, _ in
            answered.add(1, ordering: .relaxed)
            return Response(status: .ok)
        }
        routes.get("other") { _, _ in
            answeredBefore.store(answered.load(ordering: .relaxed), ordering: .relaxed)
            return Response(status: .ok)
        }
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let running = Task { [routes] in try await listener.run(routes.responder) { port.yield($0.localAddress?.port ?? 0) } }
        let number = try #require(await ports.first { _ in true })
        let rest = " HTTP/1.1\r\nHost: a\r\n\r\n"
        let floods = try (0..<32).map { _ in
            try RawConnection(port: UInt16(number), sending: String(repeating: "GET /\(rest)", count: 4096))
        }
        let client = try RawConnection(port: UInt16(number), sending: "GET /other\(rest)")
        var text = ""
        try await eventually { client.receive(into: &text) || text.contains("200 OK") }
        let count = answeredBefore.load(ordering: .relaxed)
        // Without turns it comes after all of them.
        #expect(count < floods.count * 4096)
        running.cancel()
        try await running.value
    }

    @Test("A listener stops although a client does not complete its request")
    func unfinishedRequest() async throws {
        var limits = HTTPLimits(connections: 4)
        limits.stopTimeout = .milliseconds(100)
        let listener = HTTPListener(
            .hostname("127.0.0.1", port: 0), limits: limits, hosts: nil, logger: Logger(label: "http") { _ in SwiftLogNoOpLogHandler() })
        let (requests, request) = AsyncStream.makeStream(of: Void.self)
        var routes = Routes()
        routes.post("") { received, _ in
            request.yield()
            _ = try await received.body.collect(upTo: 100)
            return Response(status: .ok)
        }
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let running = Task { [routes] in try await listener.run(routes.responder) { port.yield($0.localAddress?.port ?? 0) } }
        let number = try #require(await ports.first { _ in true })
        let start = ContinuousClock.now
        let client = try RawConnection(port: UInt16(number), sending: "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nx")
        for await _ in requests { break }
        running.cancel()
        try await running.value
        // The body's own timeout.
        #expect(ContinuousClock.now - start < .seconds(30))
        #expect(client.isClosed)
    }
}
