import Core
import NIOCore
import SessionStandIns
import TestSupport
import Testing
import WakuCrypto

@testable import SessionProtocol

/// A client's side of ZMTP and CURVE, with servers that break the rules.
@Suite struct ZMTPConnectionTests {
    private let sodium: Sodium
    private let limit = 1000
    private let hi = [Array("HI".utf8)]

    init() throws {
        sodium = try Sodium.load()
    }

    private func null() -> ZMTPConnection { ZMTPConnection(curve: nil, maximumPartByteCount: limit) }

    private func curve(_ server: CurveServer) throws -> ZMTPConnection {
        let handshake = try CurveHandshake(sodium: sodium, serverKey: server.key.publicKey, key: CurveKey(sodium: sodium))
        return ZMTPConnection(curve: handshake, maximumPartByteCount: limit)
    }

    private func openNull() throws -> ZMTPConnection {
        var connection = null()
        let ready = ZMTPFrame.encode(ZMTPFrame.command("READY", ZMTPFrame.metadata()), flags: 4)
        #expect(try events(&connection, ZMTPFrame.nullGreeting + ready) == [.opened])
        _ = connection.takeOutbound()
        return connection
    }

    /// - Returns: the connection that has sent HELLO, and its body.
    private func greetedCurve(_ server: CurveServer) throws -> (ZMTPConnection, hello: [UInt8]) {
        var connection = try curve(server)
        #expect(sent(&connection) == ZMTPFrame.curveGreeting)
        #expect(try events(&connection, ZMTPFrame.curveGreeting).isEmpty)
        let hello = try #require(ZMTPFrame.split(sent(&connection)).first)
        #expect(hello.flags == 4)
        return (connection, hello.body)
    }

    private func openCurve(_ server: inout CurveServer) throws -> ZMTPConnection {
        var (connection, hello) = try greetedCurve(server)
        #expect(try events(&connection, ZMTPFrame.encode(try server.welcome(to: hello), flags: 4)).isEmpty)
        let initiate = try #require(ZMTPFrame.split(sent(&connection)).first)
        #expect(initiate.flags == 6)
        let (ready, metadata) = try server.ready(to: initiate.body)
        #expect(metadata == ZMTPFrame.metadata("DEALER"))
        #expect(try events(&connection, ZMTPFrame.encode(ready, flags: 4)) == [.opened])
        #expect(connection.isOpen)
        return connection
    }

    private func sent(_ connection: inout ZMTPConnection) -> [UInt8] { connection.takeOutbound().map { Array(buffer: $0) } ?? [] }

    private func events(_ connection: inout ZMTPConnection, _ bytes: [UInt8]) throws -> [ZMTPConnection.Event] {
        connection.receive(ByteBuffer(bytes: bytes))
        var events: [ZMTPConnection.Event] = []
        while let event = try connection.next() { events.append(event) }
        return events
    }

    private func expectEnd(
        _ reason: OxenMQClient.Reason, _ connection: ZMTPConnection, _ bytes: [UInt8], at location: SourceLocation = #_sourceLocation
    ) {
        #expect(throws: reason, sourceLocation: location) {
            var connection = connection
            _ = try events(&connection, bytes)
        }
    }

    // MARK: The handshake

    @Test func nullHandshake() throws {
        var connection = null()
        #expect(sent(&connection) == ZMTPFrame.nullGreeting)
        #expect(try events(&connection, ZMTPFrame.nullGreeting).isEmpty)
        #expect(sent(&connection) == ZMTPFrame.encode(ZMTPFrame.command("READY", ZMTPFrame.metadata("DEALER")), flags: 4))
        #expect(!connection.isOpen)
        // Messages before the end of the handshake are not sent.
        connection.send(hi)
        #expect(sent(&connection).isEmpty)
    }

    /// Byte by byte, with messages of all lengths.
    @Test func curveHandshakeAndMessages() throws {
        var server = CurveServer(sodium: sodium)
        var connection = try openCurve(&server)
        connection.send([Array("HI".utf8), [], [UInt8](repeating: 1, count: 300)])
        let frames = ZMTPFrame.split(sent(&connection))
        let opened = try frames.map { try server.open($0.body) }
        #expect(opened.map(\.part.count) == [2, 0, 300] && opened.map(\.flags) == [1, 1, 0] && frames.map(\.flags) == [0, 0, 2])
        #expect(opened.map(\.nonce[7]) == [3, 4, 5])

        let parts = [[UInt8](repeating: 2, count: limit), [], [3]]
        let bytes = try parts.enumerated().flatMap { ZMTPFrame.encode(try server.message($0.element, flags: $0.offset < 2 ? 1 : 0)) }
        var received: [ZMTPConnection.Event] = []
        for byte in bytes { received += try events(&connection, [byte]) }
        #expect(received == [.message(parts)] && connection.heldByteCount == 0)
    }

    /// The same message from an implementation of the RFC that marks MESSAGE as a command: flags outside of the box do not count.
    @Test func flagsOutsideOfTheBoxAreIgnored() throws {
        var server = CurveServer(sodium: sodium)
        var connection = try openCurve(&server)
        #expect(try events(&connection, ZMTPFrame.encode(try server.message([1]), flags: 5)) == [.message([[1]])])
    }

    @Test func otherGreetingsAreRefused() {
        for greeting in [
            ZMTPFrame.curveGreeting, ZMTPFrame.greeting("NULL", version: 2), ZMTPFrame.greeting("NULLX"),
            Array("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".utf8),
            [UInt8](repeating: 0xFF, count: 1 << 20), [UInt8](repeating: 0, count: 64),
        ] { expectEnd(.handshakeFailed, null(), greeting) }
    }

    @Test func invalidREADYsAreRefused() {
        let bodies = [
            ZMTPFrame.command("READY", ZMTPFrame.metadata("PUB")), ZMTPFrame.command("READY"), ZMTPFrame.command("READY", [11]),
            ZMTPFrame.command("READY", ZMTPFrame.metadata() + [1, 65, 255, 255, 255, 255]),
            ZMTPFrame.command("ERROR", [3] + Array("bad".utf8)),
            ZMTPFrame.command("HELLO"), [], [5], [UInt8](repeating: 5, count: 255),
        ]
        for body in bodies { expectEnd(.handshakeFailed, null(), ZMTPFrame.nullGreeting + ZMTPFrame.encode(body, flags: 4)) }
        expectEnd(.handshakeFailed, null(), ZMTPFrame.nullGreeting + ZMTPFrame.encode([UInt8](repeating: 5, count: 5000), flags: 4))
    }

    /// libzmq 4.3.4 ends the process: `zmq_assert` after `crypto_box_beforenm`.
    @Test(arguments: [
        [UInt8](repeating: 0, count: 32), [1] + [UInt8](repeating: 0, count: 31),
        [0xEC] + [UInt8](repeating: 0xFF, count: 30) + [0x7F], [0xED] + [UInt8](repeating: 0xFF, count: 30) + [0x7F],
    ])
    func connectionKeyOfSmallOrderIsRefused(point: [UInt8]) throws {
        var server = CurveServer(sodium: sodium)
        let (connection, hello) = try greetedCurve(server)
        expectEnd(.handshakeFailed, connection, ZMTPFrame.encode(try server.welcome(to: hello, point: point), flags: 4))
        #expect(throws: CryptoError.invalidKey) {
            try CurveHandshake(sodium: sodium, serverKey: point, key: CurveKey(sodium: sodium))
        }
    }

    @Test func otherWELCOMEsAndREADYsOfCURVEAreRefused() throws {
        var server = CurveServer(sodium: sodium)
        var (connection, hello) = try greetedCurve(server)
        let welcome = try server.welcome(to: hello)
        for count in [0, 8, 23, 24, 39, 40, 167] { expectEnd(.handshakeFailed, connection, ZMTPFrame.encode(Array(welcome[..<count]))) }
        expectEnd(.handshakeFailed, connection, ZMTPFrame.encode(welcome + [0]))
        for index in welcome.indices {
            var changed = welcome
            changed[index] ^= 1
            expectEnd(.handshakeFailed, connection, ZMTPFrame.encode(changed))
        }
        #expect(try events(&connection, ZMTPFrame.encode(welcome)).isEmpty)
        let initiate = try #require(ZMTPFrame.split(sent(&connection)).first)
        let ready = try server.ready(to: initiate.body).command
        for count in [0, 6, 13, 14, 29, 30] { expectEnd(.handshakeFailed, connection, ZMTPFrame.encode(Array(ready[..<count]))) }
        for index in ready.indices {
            var changed = ready
            changed[index] ^= 1
            expectEnd(.handshakeFailed, connection, ZMTPFrame.encode(changed))
        }
        expectEnd(.handshakeFailed, connection, ZMTPFrame.encode(try server.message([1])))
        #expect(try events(&connection, ZMTPFrame.encode(ready)) == [.opened])
    }

    // MARK: Frames

    @Test func boxesThatAreNotNewAreRefused() throws {
        var server = CurveServer(sodium: sodium)
        let connection = try openCurve(&server)
        let (first, second) = (ZMTPFrame.encode(try server.message([1])), ZMTPFrame.encode(try server.message([2])))
        expectEnd(.invalidFrame, connection, first + first)
        expectEnd(.invalidFrame, connection, second + first)
        expectEnd(.invalidFrame, connection, ZMTPFrame.encode([1]))
        var changed = second
        changed[changed.count - 1] ^= 1
        expectEnd(.invalidFrame, connection, changed)
        var last = connection
        #expect(try events(&last, first + second) == [.message([[1]]), .message([[2]])])
    }

    @Test func largePartsAreRefusedAtTheirHeader() throws {
        let connection = try openNull()
        for length in [UInt64(limit + 1), 1 << 31, 1 << 63, .max] {
            expectEnd(.partTooLarge, connection, [2] + withUnsafeBytes(of: length.bigEndian) { Array($0) })
        }
        var last = connection
        #expect(try events(&last, ZMTPFrame.encode([UInt8](repeating: 1, count: limit))).count == 1)
        var server = CurveServer(sodium: sodium)
        var sealed = try openCurve(&server)
        #expect(try events(&sealed, ZMTPFrame.encode(try server.message([UInt8](repeating: 1, count: limit)))).count == 1)
        expectEnd(.partTooLarge, sealed, ZMTPFrame.encode(try server.message([UInt8](repeating: 1, count: limit + 1))))
    }

    /// No more parts are kept than show that there are too many.
    @Test func messageOfTooManyPartsIsAnEventBeforeItsEnd() throws {
        var connection = try openNull()
        let part = ZMTPFrame.encode([1], flags: 1)
        #expect(try events(&connection, [UInt8](repeating: 0, count: 16).flatMap { _ in part }).isEmpty)
        #expect(connection.heldByteCount == 16)
        #expect(try events(&connection, part) == [.message([[UInt8]](repeating: [1], count: 17))])
    }

    @Test func heldBytesAreThoseOfUnfinishedMessages() throws {
        var connection = try openNull()
        #expect(try events(&connection, ZMTPFrame.encode([1, 2, 3], flags: 1) + [0, 100, 1, 2]).isEmpty)
        #expect(connection.heldByteCount == 7)
        #expect(try events(&connection, [UInt8](repeating: 0, count: 98)).count == 1)
        #expect(connection.heldByteCount == 0)
    }

    // MARK: Commands

    @Test func pingIsAnsweredWithItsContext() throws {
        var connection = try openNull()
        for count in [0, 1, 16, 20] {
            let context = [UInt8](repeating: 9, count: count)
            #expect(try events(&connection, ZMTPFrame.encode(ZMTPFrame.command("PING", [0, 1] + context), flags: 4)).isEmpty)
            #expect(sent(&connection) == ZMTPFrame.encode(ZMTPFrame.command("PONG", Array(context.prefix(16))), flags: 4))
        }
        connection.sendPing()
        #expect(sent(&connection) == ZMTPFrame.encode(ZMTPFrame.command("PING", [0, 0]), flags: 4))

        var server = CurveServer(sodium: sodium)
        var sealed = try openCurve(&server)
        #expect(try events(&sealed, ZMTPFrame.encode(try server.message(ZMTPFrame.command("PING", [0, 1, 8]), flags: 2))).isEmpty)
        let pong = try server.open(try #require(ZMTPFrame.split(sent(&sealed)).first).body)
        #expect(pong.flags == 2 && pong.part == ZMTPFrame.command("PONG", [8]))
    }

    @Test func serverThatReadsNothingGetsNoMoreAnswers() throws {
        var connection = try openNull()
        let ping = ZMTPFrame.encode(ZMTPFrame.command("PING", [0, 0]), flags: 4)
        #expect(try events(&connection, (0..<20_000).flatMap { _ in ping }).isEmpty)
        #expect(65_536..<65_600 ~= connection.outboundByteCount)
        _ = connection.takeOutbound()
        #expect(try events(&connection, ping).isEmpty && connection.outboundByteCount > 0)
    }

    @Test func otherCommandsAreIgnored() throws {
        var connection = try openNull()
        for name in ["PONG", "SUBSCRIBE", "X", ""] {
            #expect(try events(&connection, ZMTPFrame.encode(ZMTPFrame.command(name, [1]), flags: 4)).isEmpty)
        }
        // Between the parts of a message, too.
        let bytes = ZMTPFrame.encode([1], flags: 1) + ZMTPFrame.encode(ZMTPFrame.command("PONG"), flags: 4) + ZMTPFrame.encode([2])
        #expect(try events(&connection, bytes) == [.message([[1], [2]])])
        #expect(sent(&connection).isEmpty)
        for body in [[], [5, 1], ZMTPFrame.command("PING"), ZMTPFrame.command("PING", [0])] as [[UInt8]] {
            expectEnd(.invalidFrame, connection, ZMTPFrame.encode(body, flags: 4))
        }
    }

    @Test func mutatedBytesNeverTrap() throws {
        var random = SeededGenerator(seed: 4)
        let ready = ZMTPFrame.encode(ZMTPFrame.command("READY", ZMTPFrame.metadata()), flags: 4)
        let bytes =
            ZMTPFrame.nullGreeting + ready + ZMTPFrame.encode([1, 2], flags: 1) + ZMTPFrame.encode([UInt8](repeating: 3, count: 300))
            + ZMTPFrame.encode(ZMTPFrame.command("PING", [0, 0, 1]), flags: 4)
        for _ in 0..<5000 {
            var connection = null()
            _ = try? events(&connection, random.damaged(bytes))
        }
    }
}

/// Times after which a server gets a PING, or is given up.
@Suite struct ServerLivenessTests {
    private let configuration = OxenMQClient.Configuration.storageServers
    private let start = Instant(sinceEpoch: .seconds(100))

    /// The decisions of checks every second, as `second: decision`.
    private func decisions(
        _ liveness: inout ServerLiveness, _ seconds: ClosedRange<Int>, isReady: Bool = true, isPaused: Bool = false
    ) -> [String] {
        seconds.compactMap { second in
            let decision = liveness.check(at: start + .seconds(second), isReady: isReady, isPaused: isPaused, configuration)
            return decision == .wait ? nil : "\(second): \(decision)"
        }
    }

    @Test func serverThatNeverAnswersHIIsGivenUp() {
        var liveness = ServerLiveness(startedAt: start)
        liveness.heard(at: start + .seconds(29))
        #expect(decisions(&liveness, 0...30, isReady: false) == ["30: end"])
    }

    @Test func silentServerGetsPINGsAndIsGivenUp() {
        var liveness = ServerLiveness(startedAt: start)
        liveness.heard(at: start)
        #expect(decisions(&liveness, 1...60) == ["15: ping", "30: ping", "45: ping", "60: end"])
    }

    @Test func serverThatIsHeardGetsNoPING() {
        var liveness = ServerLiveness(startedAt: start)
        for second in stride(from: 0, to: 600, by: 10) {
            liveness.heard(at: start + .seconds(second))
            #expect(decisions(&liveness, second...(second + 9)).isEmpty)
        }
    }

    /// Its silence means nothing, but the server must hear something.
    @Test func pausedConnectionSendsPINGsAndStays() {
        var liveness = ServerLiveness(startedAt: start)
        let paused = decisions(&liveness, 1...600, isPaused: true)
        #expect(paused.count == 40 && paused.allSatisfy { $0.hasSuffix("ping") })
        // After the pause the server has its time again.
        #expect(decisions(&liveness, 601...660) == ["615: ping", "630: ping", "645: ping", "660: end"])
    }
}
