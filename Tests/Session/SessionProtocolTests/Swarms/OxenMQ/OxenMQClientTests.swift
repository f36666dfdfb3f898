import Foundation
import NIOCore
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@testable import SessionProtocol

/// With pyzmq's ROUTER and CURVE, if `LIBP2P_PYTHON` names a Python that has it (Tests/Interop/requirements.txt).
@Suite(.enabled(if: OtherLibP2P.python != nil, "LIBP2P_PYTHON names no Python with pyzmq: see Deploy/test"), .serialized)
struct OxenMQClientTests {
    private let log = EventLog()
    /// Ends with the test.
    private let client: OxenMQClient
    private let router: PythonRouter
    private let tag: [UInt8] = [0, 1, 255]

    init() throws {
        router = try PythonRouter()
        let log = log
        client = OxenMQClient(sodium: try Sodium.load()) {
            log.append($0, $1)
            return .proceed
        }
    }

    private func greeted(_ number: UInt64 = 1, at other: PythonRouter? = nil) async throws -> ConnectionNumber {
        let connection = ConnectionNumber(rawValue: number)
        client.connect(connection, to: try await (other ?? router).address)
        try await eventually { log.of(connection).contains(.hello) }
        return connection
    }

    @Test func requestIsAnsweredOverCURVE() async throws {
        let connection = try await greeted()
        let body = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
        client.request(connection, "echo", tag: tag, body: body)
        try await eventually { log.of(connection).count == 2 }
        #expect(log.of(connection) == [.hello, .reply(tag: tag, parts: [body, Array("more".utf8)])])
    }

    @Test func unencryptedConnectionByAPath() async throws {
        let folder = try TemporaryFolder()
        let router = try PythonRouter("ipc://\(folder.path)/oxend.sock")
        let connection = try await greeted(at: router)
        client.request(connection, "echo", tag: tag, body: [1])
        try await eventually { log.of(connection).contains(.reply(tag: tag, parts: [[1], Array("more".utf8)])) }
    }

    @Test func errorsNameTheirRequest() async throws {
        let connection = try await greeted()
        client.request(connection, "refuse", tag: tag, body: [])
        client.request(connection, "forbid", tag: tag, body: [])
        try await eventually { log.of(connection).count == 3 }
        let expected: [OxenMQClient.Event] = [
            .refused(.unknownCommand, tag: tag, byteCount: 22), .refused(.forbidden, tag: nil, byteCount: 9),
        ]
        #expect(log.of(connection).dropFirst() == expected[...])
    }

    @Test func invalidMessagesAreDroppedAndTheConnectionContinues() async throws {
        let connection = try await greeted()
        client.request(connection, "odd", tag: tag, body: [])
        try await eventually { log.of(connection).contains(.reply(tag: tag, parts: [Array("done".utf8)])) }
        #expect(log.of(connection).filter { if case .ignored = $0 { true } else { false } }.count == 4)
        #expect(log.of(connection).contains(.command("what.is_this", parts: [Array("x".utf8)])))
    }

    @Test func messageOfTooManyPartsEndsTheConnection() async throws {
        let connection = try await greeted()
        client.request(connection, "parts", tag: tag, body: [])
        try await eventually { log.of(connection).contains(.closed(.tooManyParts)) }
    }

    @Test func floodArrivesWholeAndInOrder() async throws {
        let (connection, other) = (try await greeted(), try await greeted(2))
        client.request(connection, "flood", tag: tag, body: Array("5000 500".utf8))
        client.request(other, "echo", tag: tag, body: [7])
        try await eventually { log.of(connection).contains(.reply(tag: tag, parts: [Array("done".utf8)])) }
        try await eventually { log.of(other).count == 2 }
        let numbers = log.of(connection).compactMap { event -> Int? in
            guard case .command("notify.message", let parts) = event, let first = parts.first else { return nil }
            return Int(String(decoding: first.prefix { $0 != 0x20 }, as: UTF8.self))
        }
        #expect(numbers == Array(0..<5_000))
    }

    @Test func byeOfTheServerEndsTheConnection() async throws {
        let connection = try await greeted()
        client.request(connection, "bye", tag: tag, body: [])
        try await eventually { log.of(connection).contains(.closed(.bye)) }
    }

    @Test func closingSaysBye() async throws {
        let connection = try await greeted()
        client.close(connection)
        try await eventually { !router.peer.said("bye").isEmpty }
        #expect(log.of(connection) == [.hello])
    }

    @Test func shuttingDownSaysByeEverywhere() async throws {
        for number in 1...5 { _ = try await greeted(UInt64(number)) }
        await client.shutDown()
        try await eventually { router.peer.said("bye").count == 5 }
        // Calls after the end do nothing.
        client.connect(ConnectionNumber(rawValue: 9), to: try await router.address)
        await client.shutDown()
        #expect(log.of(ConnectionNumber(rawValue: 9)).isEmpty)
    }

    @Test func endOfTheServerIsNoticed() async throws {
        let connection = try await greeted()
        client.request(connection, "end", tag: tag, body: [])
        try await eventually { log.of(connection).contains(.closed(.disconnected)) }
        // It is not reconnected automatically; another attempt is refused.
        let other = ConnectionNumber(rawValue: 2)
        client.connect(other, to: try await router.address)
        try await eventually { log.of(other) == [.closed(.refused)] }
        #expect(log.of(connection) == [.hello, .closed(.disconnected)])
    }

    // MARK: Heartbeats: the client has no event for them

    /// libzmq ends a connection after a box that it cannot open.
    @Test func pingsOfTheServerAreAnswered() async throws {
        var dialog = try await Dialog(with: try PythonRouter(heartbeat: .milliseconds(20)))
        try await eventually { try dialog.exchange() && dialog.answerCount >= 3 }
        try await dialog.greet()
    }

    @Test func pingIsAnsweredByTheServer() async throws {
        var dialog = try await Dialog(with: router)
        try await eventually { try dialog.exchange() }
        #expect(dialog.frameCount == 0)
        dialog.connection.sendPing()
        try await eventually { try dialog.exchange() && dialog.frameCount == 1 }
        try await dialog.greet()
        #expect(dialog.answerCount == 0)
    }

    @Test func serverWithAnotherKeyIsNotTalkedTo() async throws {
        let address = try await router.address
        let connection = ConnectionNumber(rawValue: 1)
        client.connect(connection, to: OxenAddress(endpoint: address.endpoint, serverKey: [UInt8](repeating: 9, count: 32)))
        try await eventually { !log.of(connection).isEmpty }
        guard case .closed = log.of(connection).first else {
            Issue.record("\(log.of(connection))")
            return
        }
        #expect(router.peer.said("greeted").isEmpty)
    }

    @Test func partThatIsTooLargeEndsTheConnection() async throws {
        let connection = try await greeted()
        client.request(connection, "big", tag: tag, body: Array("8000000".utf8))
        try await eventually { log.of(connection).count == 2 }
        guard case .reply(_, let parts) = log.of(connection)[1] else {
            Issue.record("no reply")
            return
        }
        #expect(parts.first?.count == 8_000_000)
        client.request(connection, "big", tag: tag, body: Array("9000000".utf8))
        try await eventually { log.of(connection).last == .closed(.partTooLarge) }
    }

    @Test func checkTellsWhetherAServerAnswers() async throws {
        let sodium = try Sodium.load()
        #expect(await OxenMQClient.check(try await router.address, sodium: sodium, within: .seconds(60)) == nil)
        let nowhere = OxenAddress(endpoint: "tcp://nowhere", serverKey: nil)
        #expect(await OxenMQClient.check(nowhere, sodium: sodium, within: .seconds(60)) == "invalid address")
    }

    @Test func invalidEndpointIsReportedAsAnEvent() async throws {
        let connection = ConnectionNumber(rawValue: 1)
        client.connect(connection, to: OxenAddress(endpoint: "tcp://nowhere", serverKey: nil))
        try await eventually { log.of(connection) == [.closed(.failed("invalid address"))] }
        client.request(connection, "echo", tag: tag, body: [])
        client.close(connection)
    }

    @Test func hundredsOfConnections() async throws {
        raiseDescriptorLimit()
        let address = try await router.address
        let connections = (1...400).map { ConnectionNumber(rawValue: $0) }
        for connection in connections { client.connect(connection, to: address) }
        try await eventually(within: .seconds(120)) { connections.allSatisfy { log.of($0).contains(.hello) } }
        for connection in connections { client.request(connection, "echo", tag: tag, body: [1]) }
        try await eventually { connections.allSatisfy { log.of($0).count == 2 } }
    }

    private func raiseDescriptorLimit() {
        var limits = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits) == 0 else { return }
        limits.rlim_cur = min(limits.rlim_max, 20_000)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limits)
    }
}

/// The events of a client's connections.
final class EventLog: Sendable {
    private let events = Mutex<[ConnectionNumber: [OxenMQClient.Event]]>([:])

    func append(_ connection: ConnectionNumber, _ event: OxenMQClient.Event) {
        events.withLock { $0[connection, default: []].append(event) }
    }

    func of(_ connection: ConnectionNumber) -> [OxenMQClient.Event] {
        events.withLock { $0[connection] ?? [] }
    }
}

/// A client's connection to a router, whose bytes are seen.
private struct Dialog {
    var connection: ZMTPConnection
    /// Ends with the dialog, unless it is used elsewhere.
    private let router: PythonRouter
    private let socket: RawConnection
    private var messages: [[[UInt8]]] = []
    /// How often the router sent something after the handshake.
    private(set) var frameCount = 0
    /// How often the connection answered it by itself.
    private(set) var answerCount = 0

    init(with router: PythonRouter) async throws {
        self.router = router
        let (address, sodium) = (try await router.address, try Sodium.load())
        let curve = try CurveHandshake(sodium: sodium, serverKey: try #require(address.serverKey), key: CurveKey(sodium: sodium))
        connection = ZMTPConnection(curve: curve, maximumPartByteCount: 1000)
        socket = try RawConnection(port: try #require(address.endpoint.split(separator: ":").last.flatMap { UInt16($0) }))
    }

    /// Sends what waits, and takes what has arrived.
    ///
    /// - Returns: whether the handshake has ended.
    mutating func exchange() throws -> Bool {
        if let bytes = connection.takeOutbound() { socket.send(Array(buffer: bytes)) }
        var bytes: [UInt8] = []
        let isClosed = socket.receive(into: &bytes)
        try #require(!isClosed)
        guard !bytes.isEmpty else { return connection.isOpen }
        let wasOpen = connection.isOpen
        connection.receive(ByteBuffer(bytes: bytes))
        while let event = try connection.next() { if case .message(let parts) = event { messages.append(parts) } }
        guard wasOpen else { return connection.isOpen }
        frameCount += 1
        if connection.outboundByteCount > 0 { answerCount += 1 }
        return true
    }

    /// Sends HI, and waits for HELLO.
    mutating func greet() async throws {
        connection.send(OxenMQSession.greeting)
        try await eventually {
            _ = try exchange()
            return !messages.isEmpty
        }
        #expect(messages == [[Array("HELLO".utf8)]])
    }
}

/// `Tests/Interop/oxen_router.py` as a process.
private struct PythonRouter: Sendable {
    let peer: PythonPeer

    /// - Parameter heartbeat: nil: it sends no PINGs.
    init(_ endpoint: String = "tcp", heartbeat: Duration? = nil) throws {
        peer = try PythonPeer("oxen_router.py", [endpoint] + (heartbeat.map { ["\(Int($0 / .milliseconds(1)))"] } ?? []))
    }

    var address: OxenAddress {
        get async throws {
            let words = try await peer.says("ready")
            if words[0].hasPrefix("ipc:") { return OxenAddress(endpoint: words[0], serverKey: nil) }
            return OxenAddress(endpoint: "tcp://\(words[0])", serverKey: bytes(hex: words[1]))
        }
    }
}
