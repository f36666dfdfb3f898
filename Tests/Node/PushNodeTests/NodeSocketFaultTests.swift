import CurlClient
import Foundation
import Delivery
import Logging
import LoopbackRelay
import NodeAssembly
import NodeMetrics
import NwakuRelay
import PushNode
import StatusProtocol
import Synchronization
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

/// How a server misbehaves.
enum Misbehaviour: CaseIterable, Sendable {
    case resetAtOnce, resetMidReply, truncated, oversized, garbage, silent, byteBySecond, internalError, unreadableReply

    /// Whether a status 200 arrives.
    var isAcceptance: Bool { [.resetMidReply, .truncated, .oversized].contains(self) }

    var reply: RawHTTPServer.Reply {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
        return switch self {
        case .resetAtOnce: .reset([])
        case .resetMidReply: .reset(Array((head + "100\r\n\r\n{\"counts\"").utf8))
        case .truncated: .last(Array((head + "100\r\n\r\n{\"counts\"").utf8))
        case .oversized: .last(Array((head + "99999999\r\n\r\n").utf8) + Array(repeating: 0x20, count: 18 << 20))
        case .garbage: .last(Array("\u{1}\u{2} this is no HTTP \u{3}\r\n\r\n".utf8))
        case .silent: .hang
        case .byteBySecond: .drip(Array((head + "2\r\n\r\n{}").utf8), every: .seconds(1))
        case .internalError: .status(500, body: "<html>")
        case .unreadableReply: .status(503, headers: ["Retry-After: soon"], body: "]")
        }
    }
}

/// A server that misbehaves until it is repaired.
private final class Patient: Sendable {
    private let misbehaviour: Mutex<Misbehaviour?>

    init(_ misbehaviour: Misbehaviour) {
        self.misbehaviour = Mutex(misbehaviour)
    }

    func mend() { misbehaviour.withLock { $0 = nil } }

    func reply(_ healthy: @autoclosure () -> RawHTTPServer.Reply) -> RawHTTPServer.Reply {
        misbehaviour.withLock { $0 }?.reply ?? healthy()
    }
}

@Suite("A node whose gorush or relay misbehaves", .timeLimit(.minutes(5)))
struct NodeSocketFaultTests {
    let fixture: NodeFixture
    let bob: TestClient
    let carol: TestClient

    init() throws {
        fixture = try NodeFixture()
        bob = TestClient(of: fixture.identity.publicKey)
        carol = TestClient(of: fixture.identity.publicKey)
    }

    private func gorush(_ url: String) throws -> GorushClient {
        try GorushClient(client: CurlClient(), url: url, timeout: .milliseconds(700))
    }

    /// Registrations and queries, which have nothing to do with gorush.
    private static func expectOthersGoOn(_ node: RunningNode, _ client: TestClient, version: UInt64) async throws {
        #expect(try await node.register(client, version: version) == nil)
        #expect(try await node.versions(of: client) == [version])
    }

    @Test(
        "Whatever gorush replies, requests are answered, everything else continues, and notifications are delivered when gorush works again",
        arguments: Misbehaviour.allCases)
    func misbehavingGorush(misbehaviour: Misbehaviour) async throws {
        let patient = Patient(misbehaviour)
        let bodies = Mutex<[String]>([])
        let server = try RawHTTPServer { request in
            patient.reply(
                {
                    bodies.withLock { $0.append(String(decoding: request.body, as: UTF8.self)) }
                    return .status(200, body: #"{"counts": 1, "logs": [], "success": "ok"}"#)
                }())
        }
        defer { server.stop() }
        let messageID = randomBytes(32)
        let isAccepted = misbehaviour.isAcceptance
        try await fixture.withNode(configure: { $0.awaitLimit = .seconds(2) }, posting: gorush(server.url)) {
            [bob, carol] node async throws in
            #expect(try await node.register(bob) == nil)
            #expect(try await node.notify(bob, messageID: messageID) == (isAccepted ? nil : .internalError))
            for version in UInt64(1)...3 { try await Self.expectOthersGoOn(node, carol, version: version) }
            #expect(server.requests.contains { $0.head.hasPrefix("POST") })
            #expect(node.count(.notificationAccepted) == (isAccepted ? 1 : 0))

            patient.mend()
            try await node.wait { node.count(.notificationAccepted) == 1 }
            #expect(try await node.notify(bob, messageID: messageID) == nil)
            #expect(bodies.withLock { $0.count(where: { !$0.isEmpty }) } == (isAccepted ? 0 : 1))
            if isAccepted { #expect(server.requests.count { $0.head.hasPrefix("POST") } == 1) }
        }
    }

    @Test(
        "An unreachable gorush: unknown host, connection refused, a full backlog, no TLS",
        arguments: ["name", "port", "backlog", "tls"])
    func unreachableGorush(way: String) async throws {
        let plain = try RawHTTPServer { _ in .status(200) }
        defer { plain.stop() }
        let (full, closed) = (try FullListener(), try ReservedPort())
        let url =
            switch way {
            case "name": "http://gorush.invalid:8088"
            case "port": "http://127.0.0.1:\(closed.number)"
            case "backlog": "http://127.0.0.1:\(full.port)"
            default: "https://127.0.0.1:\(plain.port)"
            }
        try await fixture.withNode(configure: { $0.awaitLimit = .seconds(2) }, posting: gorush(url)) { [bob, carol] node async throws in
            #expect(try await node.register(bob) == nil)
            #expect(try await node.notify(bob) == .internalError)
            for version in UInt64(1)...3 { try await Self.expectOthersGoOn(node, carol, version: version) }
            try await node.wait { node.count(.notificationRetried) > 0 }
            #expect(node.count(.notificationAccepted) == 0)
        }
        withExtendedLifetime((full, closed)) {}
    }

    /// The responses of a healthy Waku node without messages.
    private static func healthyNode(_ request: RawHTTPServer.Request) -> RawHTTPServer.Reply {
        if request.head.hasPrefix("GET /relay/v1/messages") { return .status(200, body: "[]") }
        if request.head.hasPrefix("GET /store") { return .status(200, body: #"{"statusCode": 200, "messages": []}"#) }
        return .status(200, body: "OK")
    }

    private static func nwaku(_ url: String, _ needs: RelayNeeds) throws -> NwakuRESTRelay {
        try NwakuRESTRelay(
            configuration: NwakuRESTRelay.Configuration(
                address: NodeAddress(url), pubsubTopics: needs.pubsubTopics, pollInterval: .milliseconds(20),
                catchUpTopics: needs.ownTopics,
                lastSeen: needs.seenUntil), client: CurlClient(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    @Test("Whatever the only Waku node replies, readiness reports it as unavailable until it recovers", arguments: Misbehaviour.allCases)
    func misbehavingRelay(misbehaviour: Misbehaviour) async throws {
        let patient = Patient(misbehaviour)
        let server = try RawHTTPServer { request in patient.reply(Self.healthyNode(request)) }
        defer { server.stop() }
        try await fixture.withNode(makeRelay: { needs, _ in try Self.nwaku(server.url, needs) }) { node async throws in
            try await node.wait { !server.requests.isEmpty }
            #expect(node.node.obstacles.count == 1)
            #expect(node.node.obstacles.first?.hasPrefix("relay: ") == true)
            patient.mend()
            try await node.wait { node.node.obstacles.isEmpty }
        }
    }

    @Test(
        "A misbehaving Waku node does not affect messages from another one",
        arguments: Misbehaviour.allCases)
    func oneOfTwoRelays(misbehaviour: Misbehaviour) async throws {
        let patient = Patient(misbehaviour)
        let server = try RawHTTPServer { request in patient.reply(Self.healthyNode(request)) }
        defer { server.stop() }
        try await fixture.withNode(makeRelay: { needs, loopback in RelaySet([try Self.nwaku(server.url, needs), loopback]) }) {
            [bob] node async throws in
            try await node.wait { !server.requests.isEmpty }
            #expect(node.node.obstacles == [])
            try await Self.expectOthersGoOn(node, bob, version: 1)
            #expect(try await node.notify(bob) == nil)
        }
    }
}

/// A port with a full accept queue: further connections are not refused, but wait.
private final class FullListener: Sendable {
    let port: UInt16
    private let sockets: [Int32]

    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        port = try LoopbackAddress.bindFreePort(listener)
        guard listen(listener, 0) == 0 else { throw POSIXError(.EADDRNOTAVAIL) }
        var address = LoopbackAddress(port: port)
        var sockets = [listener]
        for _ in 0..<4 {
            let filler = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
            address.withPointer { _ = connect(filler, $0, $1) }
            sockets.append(filler)
        }
        self.sockets = sockets
    }

    deinit {
        for socket in sockets { close(socket) }
    }
}
