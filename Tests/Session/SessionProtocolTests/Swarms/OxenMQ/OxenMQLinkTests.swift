import Core
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import SessionProtocol

/// Connections to servers of plain sockets, which stop, break off and flood.
@Suite(.timeLimit(.minutes(5))) struct OxenMQLinkTests {
    private let connection = ConnectionNumber(rawValue: 1)
    private let log = EventLog()
    private let sodium: Sodium

    init() throws {
        sodium = try Sodium.load()
    }

    /// - Parameter pauses: Whether the connection is paused with the first message after HELLO.
    private func client(
        pauses: Bool = false, _ configure: (inout OxenMQClient.Configuration) -> Void = { _ in }
    ) -> OxenMQClient {
        var configuration = OxenMQClient.Configuration.storageServers
        configure(&configuration)
        let log = log
        return OxenMQClient(sodium: sodium, configuration: configuration) { number, event in
            log.append(number, event)
            return pauses && log.of(number).count == 2 ? .pause : .proceed
        }
    }

    private func greeted(_ client: OxenMQClient, _ server: RawZMTPServer, _ connection: ConnectionNumber? = nil) async throws {
        let connection = connection ?? self.connection
        client.connect(connection, to: OxenAddress(endpoint: server.endpoint, serverKey: nil))
        try await eventually { log.of(connection) == [.hello] }
    }

    private func greeted(
        pauses: Bool = false, _ configure: (inout OxenMQClient.Configuration) -> Void = { _ in }
    ) async throws -> (OxenMQClient, RawZMTPServer) {
        let (client, server) = (client(pauses: pauses, configure), try RawZMTPServer())
        try await greeted(client, server)
        return (client, server)
    }

    private static func message(_ number: Int, padding: Int = 0) -> [UInt8] {
        ZMTPFrame.encode(Array("notify.message".utf8), flags: 1)
            + ZMTPFrame.encode(Array("\(number)".utf8) + [UInt8](repeating: 0x20, count: padding))
    }

    private static let ping = ZMTPFrame.encode(ZMTPFrame.command("PING", [0, 0]), flags: 4)

    /// The numbers of the messages that have arrived.
    private var numbers: [Int] {
        log.of(connection).compactMap { event in
            guard case .command(_, let parts) = event, let part = parts.first else { return nil }
            return Int(String(decoding: part.prefix { $0 != 0x20 }, as: UTF8.self))
        }
    }

    // MARK: Pauses and ends

    @Test func pausedConnectionMakesTheServerWait() async throws {
        let (client, server) = try await greeted(pauses: true)
        server.send(Self.message(0))
        try await eventually { server.isSent && numbers == [0] }
        var count = 1
        // Until the buffers of both systems are full.
        while server.isSent, count < 5000 {
            server.send(Self.message(count, padding: 10_000))
            count += 1
        }
        #expect(numbers == [0] && count < 5000)
        client.resume(connection)
        try await eventually { server.isSent && numbers.count == count }
        #expect(numbers == Array(0..<count))
        await client.shutDown()
    }

    /// libzmq 4.3.4 loses messages, or ends the process: `stream_engine_base.cpp`, issue 4364.
    @Test(arguments: [false, true], [false, true])
    func messagesBeforeTheEndOfAPausedConnectionArrive(isReset: Bool, withPings: Bool) async throws {
        let (client, server) = try await greeted(pauses: true)
        for number in 0..<300 { server.send(Self.message(number) + (withPings ? Self.ping : [])) }
        try await eventually { server.isReceived && numbers.count == 1 }
        server.end(byReset: isReset)
        try await eventually { log.of(connection).last == .closed(.disconnected) }
        #expect(numbers == Array(0..<300))
        await client.shutDown()
    }

    @Test func endWhileAMessageIsIncompleteIsAnEnd() async throws {
        let (client, server) = try await greeted()
        server.send(Self.message(0) + ZMTPFrame.encode([1], flags: 1) + [0, 100, 1])
        try await eventually { server.isSent }
        server.end(byReset: false)
        try await eventually { log.of(connection).last == .closed(.disconnected) }
        #expect(numbers == [0])
        await client.shutDown()
    }

    @Test func endDuringTheHandshakeIsAFailure() async throws {
        let server = try RawZMTPServer(greeting: ZMTPFrame.nullGreeting)
        let client = self.client()
        client.connect(connection, to: OxenAddress(endpoint: server.endpoint, serverKey: nil))
        try await eventually { server.receivedByteCount > 64 }
        server.end(byReset: false)
        try await eventually { log.of(connection) == [.closed(.handshakeFailed)] }
        await client.shutDown()
    }

    // MARK: Times

    /// Its PINGs keep heartbeats of the server satisfied.
    @Test func pausedConnectionOutlivesTheTimeout() async throws {
        let server = try RawZMTPServer()
        let client = self.client(pauses: true) {
            ($0.heartbeatInterval, $0.heartbeatTimeout, $0.checkInterval) = (.milliseconds(20), .milliseconds(60), .milliseconds(5))
            $0.handshakeTimeout = .seconds(60)
        }
        client.connect(connection, to: OxenAddress(endpoint: server.endpoint, serverKey: nil))
        server.send(Self.message(0))
        try await eventually { server.isSent && numbers.count == 1 }
        let before = server.receivedByteCount
        try await eventually { server.receivedByteCount >= before + 20 * Self.ping.count }
        #expect(log.of(connection).count == 2)
        client.resume(connection)
        // It is silent now.
        try await eventually { log.of(connection).last == .closed(.silent) }
        await client.shutDown()
    }

    @Test func serverThatNeverSaysHELLOIsGivenUp() async throws {
        let server = try RawZMTPServer(greeting: ZMTPFrame.nullGreeting)
        let client = self.client { ($0.handshakeTimeout, $0.checkInterval) = (.milliseconds(100), .milliseconds(5)) }
        client.connect(connection, to: OxenAddress(endpoint: server.endpoint, serverKey: nil))
        try await eventually { log.of(connection) == [.closed(.silent)] }
        await client.shutDown()
    }

    @Test func machineThatDoesNotAnswerIsGivenUp() async throws {
        let port = try SilentPort()
        let client = self.client { ($0.handshakeTimeout, $0.checkInterval) = (.milliseconds(100), .milliseconds(5)) }
        client.connect(connection, to: OxenAddress(endpoint: "tcp://127.0.0.1:\(port.number)", serverKey: nil))
        try await eventually { log.of(connection) == [.closed(.silent)] }
        await client.shutDown()
    }

    // MARK: Limits

    @Test func endlessMessageEndsTheConnection() async throws {
        let (client, server) = try await greeted { $0.unreceived.each = 200_000 }
        let part = ZMTPFrame.encode([UInt8](repeating: 1, count: 60_000), flags: 1)
        server.send(Self.message(0) + part + part + part)
        try await eventually { server.isSent && numbers == [0] }
        #expect(log.of(connection).count == 2)
        server.send(part)
        try await eventually { server.isSent && log.of(connection).last == .closed(.endlessMessage) }
        await client.shutDown()
    }

    @Test func connectionsShareTheLimitOfUnfinishedMessages() async throws {
        let servers = try (0..<4).map { _ in try RawZMTPServer() }
        let client = self.client { $0.unreceived = UnreceivedLimits(each: 1 << 20, free: 1000, common: 200_000) }
        for (number, server) in servers.enumerated() { try await greeted(client, server, ConnectionNumber(rawValue: UInt64(number))) }
        let sizes = [60_000, 60_000, 70_000, 60_000]
        for (server, size) in zip(servers, sizes) {
            server.send(ZMTPFrame.encode([UInt8](repeating: 1, count: size), flags: 1))
            try await eventually { server.isSent }
        }
        try await eventually { log.of(ConnectionNumber(rawValue: 2)).last == .closed(.endlessMessage) }
        for number in [0, 1, 3] as [UInt64] { #expect(log.of(ConnectionNumber(rawValue: number)) == [.hello]) }
        await client.shutDown()
    }

    @Test func serverThatReadsNothingIsGivenUp() async throws {
        let server = try RawZMTPServer()
        let client = self.client { $0.sendQueueByteCount = 1 << 20 }
        try await greeted(client, server)
        for _ in 0..<80 { client.request(connection, "x", tag: [], body: [UInt8](repeating: 1, count: 500_000)) }
        try await eventually { log.of(connection).last == .closed(.sendQueueFull) }
        // It does not delay the end, nor does what the server has not read.
        await client.shutDown()
    }

    @Test func connectionsAreLimited() async throws {
        let servers = try (0..<2).map { _ in try RawZMTPServer() }
        let client = self.client { $0.maximumConnections = 1 }
        try await greeted(client, servers[0])
        let other = ConnectionNumber(rawValue: 2)
        client.connect(other, to: OxenAddress(endpoint: servers[1].endpoint, serverKey: nil))
        try await eventually { log.of(other) == [.closed(.failed("too many connections"))] }
        await client.shutDown()
    }

    // MARK: Addresses

    @Test func nameIsResolved() async throws {
        let server = try RawZMTPServer()
        let client = self.client()
        client.connect(connection, to: OxenAddress(endpoint: "tcp://localhost:\(server.port)", serverKey: nil))
        try await eventually { log.of(connection) == [.hello] }
        let other = ConnectionNumber(rawValue: 2)
        client.connect(other, to: OxenAddress(endpoint: "tcp://no-such-name.invalid:1", serverKey: nil))
        try await eventually { log.of(other) == [.closed(.failed("unknown host"))] }
        await client.shutDown()
    }

    @Test(arguments: ["tcp://1.2.3.4:70000", "udp://1.2.3.4:1", "tcp://[::1]", "", "ipc:///" + String(repeating: "a", count: 200)])
    func invalidAddressIsReported(endpoint: String) async throws {
        let client = self.client()
        client.connect(connection, to: OxenAddress(endpoint: endpoint, serverKey: nil))
        try await eventually { log.of(connection) == [.closed(.failed("invalid address"))] }
        await client.shutDown()
    }

    @Test func serverKeyOfSmallOrderIsReported() async throws {
        let client = self.client()
        client.connect(connection, to: OxenAddress(endpoint: "tcp://127.0.0.1:1", serverKey: [UInt8](repeating: 0, count: 32)))
        try await eventually { log.of(connection) == [.closed(.handshakeFailed)] }
        await client.shutDown()
    }

    @Test func clientMayBeReleasedWithConnections() async throws {
        let server = try RawZMTPServer()
        var client: OxenMQClient? = self.client()
        try await greeted(try #require(client), server)
        client = nil
        try await eventually { server.isClosedByPeer }
    }
}

/// A server of one connection, of the mechanism NULL, which says READY and HELLO without waiting for the client.
private final class RawZMTPServer: Sendable {
    static let greeting =
        ZMTPFrame.nullGreeting + ZMTPFrame.encode(ZMTPFrame.command("READY", ZMTPFrame.metadata()), flags: 4)
        + ZMTPFrame.encode(Array("HELLO".utf8))

    private struct State {
        var descriptor: Int32 = -1
        var unsent: [UInt8] = []
        var receivedByteCount = 0
        var isClosedByPeer = false
    }

    let port: UInt16
    private let listener: Int32
    private let state = Mutex(State())

    var endpoint: String { "tcp://127.0.0.1:\(port)" }

    init(greeting: [UInt8] = greeting) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        port = try LoopbackAddress.bindFreePort(listener)
        guard listen(listener, 1) == 0 else { throw POSIXError(.EADDRNOTAVAIL) }
        self.listener = listener
        state.withLock { $0.unsent = greeting }
        Thread.detachNewThread { [self] in
            let descriptor = accept(listener, nil, nil)
            guard descriptor >= 0 else { return }
            // Sent is sent: a reset would drop what waits for more.
            var isOn: Int32 = 1
            setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
            state.withLock { $0.descriptor = descriptor }
            _ = isSent
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        state.withLock { if $0.descriptor >= 0 { close($0.descriptor) } }
    }

    /// Sends bytes after those that wait: see ``isSent``.
    func send(_ bytes: [UInt8]) {
        state.withLock { $0.unsent += bytes }
        _ = isSent
    }

    /// Whether the system took everything; sends what it takes now.
    var isSent: Bool {
        state.withLock { state in
            while !state.unsent.isEmpty {
                let count = Glibc.send(state.descriptor, state.unsent, state.unsent.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
                guard count > 0 else { return false }
                state.unsent.removeFirst(count)
            }
            return state.descriptor >= 0
        }
    }

    /// Whether the system of the client has everything.
    var isReceived: Bool {
        guard isSent else { return false }
        var count: Int32 = 0
        return ioctl(state.withLock(\.descriptor), UInt(TIOCOUTQ), &count) == 0 && count == 0
    }

    /// Reads the bytes that have arrived, and returns their number since the beginning.
    var receivedByteCount: Int {
        state.withLock { state in
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = recv(state.descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
                if count == 0 { state.isClosedByPeer = true }
                guard count > 0 else { return state.receivedByteCount }
                state.receivedByteCount += count
            }
        }
    }

    var isClosedByPeer: Bool {
        _ = receivedByteCount
        return state.withLock { $0.isClosedByPeer }
    }

    func end(byReset isReset: Bool) {
        state.withLock { state in
            // Unread bytes of the client would turn any end into a reset.
            guard isReset else {
                shutdown(state.descriptor, Int32(SHUT_WR))
                return
            }
            var linger = linger(l_onoff: 1, l_linger: 0)
            setsockopt(state.descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
            close(state.descriptor)
            state.descriptor = -1
        }
    }
}
