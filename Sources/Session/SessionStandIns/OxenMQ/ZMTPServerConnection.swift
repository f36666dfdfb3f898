import NIOCore
import SessionProtocol

/// The server's side of a connection of ZMTP with CURVE, without I/O. The counterpart of `ZMTPConnection`; its clients are trusted.
///
///     greeting ──▶   ◀── greeting   ◀── HELLO   WELCOME ──▶   ◀── INITIATE   READY ──▶ open
struct ZMTPServerConnection {
    private enum State {
        case greeting, hello, initiate, open
    }

    struct Refused: Error {}

    private typealias Flag = ZMTPFrames.Flag

    private static let mechanism = "CURVE"
    private static let limit = 256 << 20

    private var state = State.greeting
    private var frames = ZMTPFrames(mechanism: mechanism, isServer: true)
    private var curve: CurveServer
    /// Of a message whose last part has not arrived.
    private var parts: [[UInt8]] = []

    init(_ curve: CurveServer) { self.curve = curve }

    mutating func receive(_ bytes: ByteBuffer) { frames.receive(bytes) }

    /// The parts of the next message; nil until more bytes were received.
    ///
    /// - Throws: why the connection must end.
    mutating func next() throws -> [[UInt8]]? {
        if state == .greeting {
            guard let isExpected = frames.readGreeting(Self.mechanism) else { return nil }
            guard isExpected else { throw Refused() }
            state = .hello
        }
        while let frame = try frames.readFrame(limit: Self.limit) {
            if let message = try received(frame.body) { return message }
        }
        return nil
    }

    private mutating func received(_ body: [UInt8]) throws -> [[UInt8]]? {
        switch state {
        case .greeting: return nil
        case .hello:
            frames.write(try curve.welcome(to: body), flags: Flag.command)
            state = .initiate
            return nil
        case .initiate:
            frames.write(try curve.ready(to: body).command, flags: Flag.command)
            state = .open
            return nil
        case .open:
            let (flags, part, _) = try curve.open(body)
            if flags & Flag.sealedCommand != 0 {
                try receivedCommand(part)
                return nil
            }
            parts.append(part)
            guard flags & Flag.more == 0 else { return nil }
            defer { parts = [] }
            return parts
        }
    }

    /// Answers a PING: `ttl(2) ‖ context`.
    private mutating func receivedCommand(_ command: [UInt8]) throws {
        guard command.count >= 7, command.starts(with: ZMTPFrames.command("PING")) else { return }
        try send(ZMTPFrames.command("PONG", Array(command[7...])), flags: Flag.sealedCommand)
    }

    /// Dropped before the handshake has ended.
    mutating func send(_ parts: [[UInt8]]) throws {
        guard state == .open else { return }
        for (index, part) in parts.enumerated() { try send(part, flags: index < parts.count - 1 ? Flag.more : 0) }
    }

    private mutating func send(_ part: [UInt8], flags: UInt8) throws {
        frames.write(try curve.message(part, flags: flags), flags: 0)
    }

    /// The bytes to send; nil if there are none.
    mutating func takeOutbound() -> ByteBuffer? { frames.takeOutbound() }
}
