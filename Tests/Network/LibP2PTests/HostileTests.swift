import NIOCore
import NIOEmbedded
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@testable import LibP2P

/// One side is a ``ConnectionHandler``, the other a manually driven peer. The clock is manual.
@Suite struct HostileTests {
    /// Records its calls.
    private final class Owner: ConnectionOwner {
        let traffic = Traffic()
        let memory = MemoryBudget(limit: 1 << 20)
        let reliefs = Mutex(0)
        let opened = Mutex<[PeerID]>([])
        let ends = Mutex<[String]>([])
        let started = Mutex(0)
        let whenStarted = Mutex<(@Sendable (PeerStream) -> Void)?>(nil)

        func opened(_ connection: Connection) -> ConnectionError? {
            opened.withLock { $0.append(connection.peer) }
            return nil
        }
        func closed(_ connection: Connection?, _ reason: any Error) { ends.withLock { $0.append("\(reason)") } }
        func relieveMemory() { reliefs.withLock { $0 += 1 } }
        func isServed(_ protocolID: String) -> Bool { protocolID == "/test" }
        func start(_ stream: PeerStream) -> Task<Void, Never>? {
            started.withLock { $0 += 1 }
            whenStarted.withLock { $0 }?(stream)
            return Task {}
        }
        var end: String? { ends.withLock { $0.first } }
    }

    private final class Victim {
        let channel = EmbeddedChannel()
        let owner = Owner()
        let key = NodeKey.generate()
        let opened: EventLoopFuture<Connection>

        init() throws {
            let promise = channel.eventLoop.makePromise(of: Connection.self)
            opened = promise.futureResult
            try channel.pipeline.syncOperations.addHandler(
                ConnectionHandler(
                    .responder, identity: NoiseIdentity(key), expecting: nil, remoteAddress: nil, configuration: HostConfiguration(),
                    owner: owner, opened: promise))
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }

        // An open channel retains itself.
        deinit { _ = try? channel.finish(acceptAlreadyClosed: true) }

        func send(_ bytes: ByteBuffer) throws { try channel.writeInbound(bytes) }

        func received() throws -> ByteBuffer {
            var all = ByteBuffer()
            while let bytes = try channel.readOutbound(as: ByteBuffer.self) { all.writeImmutableBuffer(bytes) }
            return all
        }
    }

    /// The attacker's end of a secured connection.
    private struct Attacker {
        var upgraded: ConnectionUpgrade.Upgraded

        init(_ victim: Victim) throws {
            var upgrade = ConnectionUpgrade(.initiator, identity: NoiseIdentity(.generate()), expecting: victim.key.peerID)
            var output = upgrade.opening
            var input = ByteBuffer()
            for _ in 0..<10 {
                try victim.send(output)
                output = ByteBuffer()
                input.writeImmutableBuffer(try victim.received())
                if let upgraded = try upgrade.receive(&input, output: &output) {
                    self.upgraded = upgraded
                    return
                }
            }
            throw ConnectionError.timedOut
        }

        mutating func send(_ frames: [UInt8], to victim: Victim) throws {
            var plain = ByteBuffer(bytes: frames)
            try victim.send(upgraded.transport.seal(&plain))
        }

        mutating func received(from victim: Victim) throws -> [UInt8] {
            var sealed = try victim.received()
            return Array(buffer: try upgraded.transport.open(&sealed))
        }
    }

    private func frame(_ type: UInt8, _ flags: UInt16, _ stream: UInt32, _ length: UInt32, _ data: [UInt8] = []) -> [UInt8] {
        var buffer = ByteBuffer()
        buffer.writeMultipleIntegers(UInt8(0), type, flags, stream, length)
        return Array(buffer: buffer) + data
    }

    private func data(_ stream: UInt32, _ bytes: [UInt8]) -> [UInt8] { frame(0, 0, stream, UInt32(bytes.count), bytes) }

    private func line(_ text: String) -> [UInt8] { Array(buffer: MultistreamNegotiation.line(text)) }

    @Test func aSilentHandshakeTimesOut() throws {
        let victim = try Victim()
        victim.channel.embeddedEventLoop.advanceTime(by: .seconds(9))
        #expect(victim.owner.end == nil && victim.channel.isActive)
        victim.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(victim.owner.end == "the peer did not respond in time" && !victim.channel.isActive)
        #expect(throws: ConnectionError.timedOut) { try victim.opened.wait() }
    }

    @Test func aSlowHandshakeTimesOut() throws {
        let victim = try Victim()
        for byte in line("/multistream/1.0.0").prefix(10) {
            #expect(victim.channel.isActive)
            try victim.send(ByteBuffer(bytes: [byte]))
            victim.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        }
        #expect(!victim.channel.isActive)
    }

    @Test func anUnfinishedHandshakeTimesOut() throws {
        let victim = try Victim()
        try victim.send(ByteBuffer(bytes: line("/multistream/1.0.0") + line("/noise")))
        victim.channel.embeddedEventLoop.advanceTime(by: .seconds(9))
        try victim.send(ByteBuffer(bytes: [0, 32] + X25519PrivateKey.generate().publicKey))
        victim.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(victim.owner.end == "the peer did not respond in time")
    }

    @Test(
        arguments: [
            ("an HTTP request", Array("GET / HTTP/1.1\r\n\r\n".utf8)), ("a long line", [0xFF, 0xFF, 3]), ("zeros", [0, 0, 0, 0]),
            ("noise at once", [0, 32] + [UInt8](repeating: 7, count: 32)),
        ] as [(String, [UInt8])])
    func invalidUpgradesEndTheConnection(what: String, bytes: [UInt8]) throws {
        let victim = try Victim()
        try victim.send(ByteBuffer(bytes: bytes))
        #expect(victim.owner.end != nil && !victim.channel.isActive)
    }

    @Test func anOversizedHandshakeMessageEndsTheConnection() throws {
        let victim = try Victim()
        try victim.send(ByteBuffer(bytes: line("/multistream/1.0.0") + line("/noise") + [0xFF, 0xFF]))
        #expect(victim.owner.end == "tooLarge")
    }

    @Test func alteredFramesEndTheConnection() throws {
        let victim = try Victim()
        var attacker = try Attacker(victim)
        #expect(victim.owner.opened.withLock { $0.count } == 1)
        var plain = ByteBuffer(bytes: frame(2, 1, 0, 1))
        var sealed = attacker.upgraded.transport.seal(&plain)
        sealed.setInteger(try #require(sealed.getInteger(at: 5, as: UInt8.self)) ^ 1, at: 5)
        try victim.send(sealed)
        #expect(victim.owner.end == "authenticationFailed" && !victim.channel.isActive)
    }

    @Test func aWindowOverrunEndsTheConnectionWithAReason() throws {
        let victim = try Victim()
        var attacker = try Attacker(victim)
        try attacker.send(frame(1, 1, 1, 0), to: victim)
        _ = try attacker.received(from: victim)
        try attacker.send(frame(0, 0, 1, 256 * 1024 + 1), to: victim)
        #expect(victim.owner.end == "windowExceeded")
        #expect(try attacker.received(from: victim) == frame(3, 0, 0, 1))
        #expect(!victim.channel.isActive)
    }

    @Test func pingsAreAnswered() throws {
        let victim = try Victim()
        var attacker = try Attacker(victim)
        try attacker.send(frame(2, 1, 0, 77), to: victim)
        #expect(try attacker.received(from: victim) == frame(2, 2, 0, 77))
    }

    @Test func floodsOfPingsEndTheConnectionOnce() throws {
        let victim = try Victim()
        var attacker = try Attacker(victim)
        try attacker.send((0..<20_000).flatMap { _ in frame(2, 1, 0, 1) }, to: victim)
        #expect(victim.owner.ends.withLock { $0 } == ["answersUnread"])
    }

    @Test func streamsWithoutProtocolAreLimitedAndTimeOut() throws {
        let victim = try Victim()
        var attacker = try Attacker(victim)
        try attacker.send((0..<100).flatMap { frame(1, 1, 2 * $0 + 1, 0) }, to: victim)
        let answers = try attacker.received(from: victim)
        let resets = stride(from: 0, to: 100, by: 1).filter { index in contains(answers, frame(1, 8, UInt32(2 * index + 1), 0)) }
        #expect(resets == Array(64..<100))
        // Occasional bytes keep none of the streams open. The connection may stay.
        for _ in 0..<9 {
            victim.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
            try attacker.send(data(1, [19]), to: victim)
            _ = try attacker.received(from: victim)
        }
        victim.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(contains(try attacker.received(from: victim), frame(1, 8, 3, 0)))
        #expect(victim.channel.isActive)
        // Then there is room for other streams.
        try attacker.send(frame(1, 1, 1_001, 0) + data(1_001, line("/multistream/1.0.0") + line("/test")), to: victim)
        #expect(victim.owner.started.withLock { $0 } == 1)
    }

    @Test("The earliest deadline of a stream resets it, unless the peer ended the stream before", arguments: [nil, 4, 8] as [UInt16?])
    func deadlines(ending: UInt16?) throws {
        let victim = try Victim()
        victim.owner.whenStarted.withLock { action in
            action = { stream in
                stream.close()
                stream.endAfter(.minutes(10))
            }
        }
        var attacker = try Attacker(victim)
        try attacker.send(frame(1, 1, 1, 0) + data(1, line("/multistream/1.0.0") + line("/test")), to: victim)
        victim.channel.embeddedEventLoop.run()
        if let ending { try attacker.send(frame(1, ending, 1, 0), to: victim) }
        victim.channel.embeddedEventLoop.advanceTime(by: .seconds(9))
        #expect(!contains(try attacker.received(from: victim), frame(1, 8, 1, 0)))
        victim.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        #expect(contains(try attacker.received(from: victim), frame(1, 8, 1, 0)) == (ending == nil))
        #expect(victim.channel.isActive)
    }

    @Test func lsIsRefusedPolitely() throws {
        let victim = try Victim()
        var attacker = try Attacker(victim)
        try attacker.send(frame(1, 1, 1, 0) + data(1, line("/multistream/1.0.0") + line("ls") + line("/test")), to: victim)
        let answers = try attacker.received(from: victim)
        #expect(answers == frame(1, 2, 1, 0) + data(1, line("/multistream/1.0.0")) + data(1, line("na") + line("/test")))
    }

    @Test func aMalformedNegotiationResetsOnlyItsStream() throws {
        let victim = try Victim()
        var attacker = try Attacker(victim)
        try attacker.send(frame(1, 1, 1, 0) + data(1, [0xFF, 0xFF, 3]), to: victim)
        #expect(contains(try attacker.received(from: victim), frame(1, 8, 1, 0)))
        #expect(victim.channel.isActive)
    }

    /// Five streams with a window of unread data each.
    @Test func unreadDataCountsUntilTheConnectionEnds() throws {
        let victim = try Victim()
        var attacker = try Attacker(victim)
        let before = victim.owner.memory.byteCount
        for id in stride(from: UInt32(1), through: 9, by: 2) {
            #expect(victim.owner.reliefs.withLock { $0 } == 0)
            try attacker.send(frame(1, 1, id, 0) + data(id, line("/multistream/1.0.0") + line("/test")), to: victim)
            for _ in 0..<8 { try attacker.send(data(id, [UInt8](repeating: 0, count: 30_000)), to: victim) }
            _ = try attacker.received(from: victim)
        }
        #expect(victim.owner.memory.byteCount - before == 5 * 8 * 30_000)
        victim.channel.embeddedEventLoop.run()
        #expect(victim.owner.reliefs.withLock { $0 } > 0)
        try attacker.send(frame(3, 0, 0, 0), to: victim)
        _ = try victim.received()
        #expect(victim.owner.memory.byteCount == 0)
    }

    /// Data of streams that are not open, which is dropped.
    @Test func readsThatEndWithinAHeaderAreNotKept() throws {
        let victim = try Victim()
        var attacker = try Attacker(victim)
        let frame = data(1, [UInt8](repeating: 7, count: 60_000))
        try attacker.send(Array(frame.prefix(6)), to: victim)
        for _ in 0..<50 {
            try attacker.send(Array(frame.dropFirst(6) + frame.prefix(6)), to: victim)
            let handler = try victim.channel.pipeline.syncOperations.handler(type: ConnectionHandler.self)
            #expect(handler.plain.readableBytes == 6 && handler.plain.storageCapacity <= 4096)
        }
        #expect(victim.channel.isActive)
    }

    @Test func refusedProposalsAreNotKept() throws {
        let victim = try Victim()
        var attacker = try Attacker(victim)
        let proposal = line("/" + String(repeating: "a", count: 1_000))
        try attacker.send(frame(1, 1, 1, 0) + data(1, line("/multistream/1.0.0")), to: victim)
        for _ in 1..<MultistreamNegotiation.proposalLimit { try attacker.send(data(1, proposal), to: victim) }
        let handler = try victim.channel.pipeline.syncOperations.handler(type: ConnectionHandler.self)
        guard case .negotiating(let negotiation) = handler.streams[1]?.phase else {
            Issue.record("the stream ended")
            return
        }
        #expect(negotiation.received.readableBytes == 0 && negotiation.received.storageCapacity <= 2_048)
    }

    @Test func goingAwayEndsTheConnection() throws {
        let victim = try Victim()
        var attacker = try Attacker(victim)
        try attacker.send(frame(3, 0, 0, 0), to: victim)
        #expect(victim.owner.end == "goneAway(code: 0)" && !victim.channel.isActive)
    }

    @Test func aSilentPeerIsPingedAndThenDisconnected() throws {
        let victim = try Victim()
        var attacker = try Attacker(victim)
        let loop = victim.channel.embeddedEventLoop
        // The first period included the handshake.
        loop.advanceTime(by: .seconds(20))
        #expect(try attacker.received(from: victim) == [])
        loop.advanceTime(by: .seconds(20))
        #expect(try attacker.received(from: victim) == frame(2, 1, 0, 1))
        try attacker.send(frame(2, 2, 0, 1), to: victim)
        loop.advanceTime(by: .seconds(40))
        #expect(try attacker.received(from: victim) == frame(2, 1, 0, 1))
        loop.advanceTime(by: .seconds(20))
        #expect(victim.owner.end == "unanswered" && !victim.channel.isActive)
    }

    @Test func damagedTrafficEndsOneConnectionWithoutATrap() throws {
        var random = SeededGenerator(seed: 5)
        let good =
            frame(1, 1, 1, 0) + data(1, line("/multistream/1.0.0") + line("/test")) + data(1, [1, 2, 3]) + frame(2, 1, 0, 1)
            + frame(1, 0, 1, 5) + frame(0, 4, 1, 0) + frame(1, 8, 1, 0)
        for _ in 0..<300 {
            let victim = try Victim()
            var attacker = try Attacker(victim)
            try attacker.send(random.damaged(good), to: victim)
            try attacker.send(random.damaged(good), to: victim)
            victim.channel.embeddedEventLoop.advanceTime(by: .minutes(2))
            #expect(victim.owner.ends.withLock { $0.count } == 1)
        }
    }

    private func contains(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
        guard bytes.count >= part.count else { return false }
        return (0...(bytes.count - part.count)).contains { Array(bytes[$0..<$0 + part.count]) == part }
    }
}
