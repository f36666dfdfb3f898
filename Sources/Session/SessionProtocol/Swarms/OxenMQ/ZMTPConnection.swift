import NIOCore

/// A client's connection of ZMTP 3.1 with the mechanism NULL or CURVE, without I/O: the server's bytes in; messages, and bytes for the server, out.
/// RFC 23, 26 and 37, and libzmq's form of CURVE: after the handshake every frame is a MESSAGE, those of commands too. See ``ZMTPFrames`` for the
/// layouts.
///
///     greeting ──▶   ◀── greeting      NULL    READY ──▶   ◀── READY ──────────────────────────────┐
///                                      CURVE   HELLO ──▶   ◀── WELCOME   INITIATE ──▶   ◀── READY ──┴──▶ open
struct ZMTPConnection {
    enum Event: Equatable {
        case opened
        /// At most one part more than ``OxenMQSession/maximumPartCount``.
        case message([[UInt8]])
    }

    private enum State {
        /// Waits for the server's greeting; nil for NULL.
        case greeting(CurveHandshake?)
        case welcome(CurveHandshake)
        case ready(CurveSession?)
        case open(CurveSession?)
    }

    private typealias Flag = ZMTPFrames.Flag

    /// Limit of a command of the handshake.
    private static let handshakeLimit = 4096
    /// With so many bytes to send, PINGs are not answered: a server that does not read could make them grow.
    private static let answerLimit = 64 << 10
    /// Limit of the context that a PING has and its PONG repeats.
    private static let contextLimit = 16
    /// The types of sockets that a DEALER may talk to.
    private static let serverTypes = ["REP", "DEALER", "ROUTER"].map { Array($0.utf8) }
    private static let metadata = ZMTPFrames.metadata(socketType: "DEALER")

    private var state: State
    private let maximumPartByteCount: Int
    private var frames: ZMTPFrames
    /// Of a message whose last part has not arrived.
    private var parts: [[UInt8]] = []
    private var partByteCount = 0

    /// - Parameter curve: nil for the mechanism NULL.
    init(curve: CurveHandshake?, maximumPartByteCount: Int) {
        state = .greeting(curve)
        self.maximumPartByteCount = maximumPartByteCount
        frames = ZMTPFrames(mechanism: Self.mechanism(of: curve), isServer: false)
    }

    var isOpen: Bool { if case .open = state { true } else { false } }

    /// The bytes of the server that are no event yet.
    var heldByteCount: Int { frames.inboundByteCount + partByteCount }

    // MARK: Receiving

    /// Takes bytes of the server. ``next()`` returns their events.
    mutating func receive(_ bytes: ByteBuffer) { frames.receive(bytes) }

    /// The next event; nil until more bytes were received.
    ///
    /// - Throws: why the connection must end.
    mutating func next() throws(OxenMQClient.Reason) -> Event? {
        while true {
            if case .greeting(let curve) = state {
                guard let isExpected = frames.readGreeting(Self.mechanism(of: curve)) else { return nil }
                guard isExpected else { throw .handshakeFailed }
                greeted(curve)
                continue
            }
            guard let frame = try readFrame() else {
                shrink()
                return nil
            }
            if let event = try received(frame) { return event }
        }
    }

    private mutating func greeted(_ curve: CurveHandshake?) {
        if let curve {
            state = .welcome(curve)
            frames.write(curve.hello, flags: Flag.command)
        } else {
            state = .ready(nil)
            frames.write(ZMTPFrames.command("READY", Self.metadata), flags: Flag.command)
        }
    }

    private mutating func readFrame() throws(OxenMQClient.Reason) -> ZMTPFrames.Frame? {
        let limit =
            switch state {
            case .open(nil): maximumPartByteCount
            case .open: maximumPartByteCount + CurveSession.overhead
            default: Self.handshakeLimit
            }
        do throws(ZMTPFrames.TooLarge) {
            return try frames.readFrame(limit: limit)
        } catch {
            throw isOpen ? .partTooLarge : .handshakeFailed
        }
    }

    /// Keeps a few bytes that wait for the rest of their frame without the large buffer that they came in.
    mutating func shrink() { frames.shrink() }

    private mutating func received(_ frame: ZMTPFrames.Frame) throws(OxenMQClient.Reason) -> Event? {
        switch state {
        case .open(let session): return try received(frame, session)
        case .greeting: return nil
        case .welcome(let curve):
            // Also an ERROR ends here, and any message.
            guard let (command, session) = try? curve.initiate(answering: frame.body, metadata: Self.metadata) else {
                throw .handshakeFailed
            }
            state = .ready(session)
            frames.write(command, flags: Flag.command)
            return nil
        case .ready(var session):
            let metadata = session == nil ? Self.metadata(ofReady: frame.body) : try? session?.open(ready: frame.body)
            guard let metadata, Self.isFromServer(metadata) else { throw .handshakeFailed }
            state = .open(session)
            return .opened
        }
    }

    /// Receives a frame after the handshake.
    private mutating func received(_ frame: ZMTPFrames.Frame, _ session: CurveSession?) throws(OxenMQClient.Reason) -> Event? {
        var (isCommand, hasMore, body) = (frame.flags & Flag.command != 0, frame.flags & Flag.more != 0, frame.body)
        if var session {
            // Only the flags in the box are authenticated.
            guard let (flags, part) = try? session.open(frame.body) else { throw .invalidFrame }
            (isCommand, hasMore, body) = (flags & Flag.sealedCommand != 0, flags & Flag.more != 0, part)
            state = .open(session)
        }
        if isCommand {
            try receivedCommand(body)
            return nil
        }
        parts.append(body)
        partByteCount += body.count
        guard !hasMore || parts.count > OxenMQSession.maximumPartCount else { return nil }
        defer { (parts, partByteCount) = ([], 0) }
        return .message(parts)
    }

    /// Answers a PING: `ttl(2) ‖ context`. Other commands need no answer.
    private mutating func receivedCommand(_ command: [UInt8]) throws(OxenMQClient.Reason) {
        guard let size = command.first, command.count > size else { throw .invalidFrame }
        guard command.dropFirst().prefix(Int(size)).elementsEqual("PING".utf8) else { return }
        guard command.count >= 7 else { throw .invalidFrame }
        guard frames.outboundByteCount < Self.answerLimit else { return }
        send(command: ZMTPFrames.command("PONG", Array(command[7...].prefix(Self.contextLimit))))
    }

    // MARK: Sending

    /// Sends a message, after ``Event/opened``.
    mutating func send(_ parts: [[UInt8]]) {
        for (index, part) in parts.enumerated() {
            let more = index < parts.count - 1 ? Flag.more : 0
            send(part, flags: more, sealedFlags: more)
        }
    }

    /// Asks the server for a PONG, after ``Event/opened``. It has no time limit of its own for the next one.
    mutating func sendPing() {
        send(command: ZMTPFrames.command("PING", [0, 0]))
    }

    private mutating func send(command: [UInt8]) {
        send(command, flags: Flag.command, sealedFlags: Flag.sealedCommand)
    }

    private mutating func send(_ body: [UInt8], flags: UInt8, sealedFlags: UInt8) {
        guard case .open(let session) = state else { return }
        guard var session else { return frames.write(body, flags: flags) }
        frames.write(session.seal(body, flags: sealedFlags), flags: 0)
        state = .open(session)
    }

    var outboundByteCount: Int { frames.outboundByteCount }

    /// The bytes to send; nil if there are none.
    mutating func takeOutbound() -> ByteBuffer? { frames.takeOutbound() }

    // MARK: Metadata

    private static func mechanism(of curve: CurveHandshake?) -> String { curve == nil ? "NULL" : "CURVE" }

    private static func metadata(ofReady command: [UInt8]) -> [UInt8]? {
        let name = ZMTPFrames.command("READY")
        return command.starts(with: name) ? Array(command.dropFirst(name.count)) : nil
    }

    /// Whether these are well-formed properties, with the type of a socket that a DEALER may talk to.
    private static func isFromServer(_ metadata: [UInt8]) -> Bool {
        var (reader, isServer) = (ByteBuffer(bytes: metadata), false)
        while reader.readableBytes > 0 {
            guard let name = reader.readLengthPrefixedSlice(as: UInt8.self), let value = reader.readLengthPrefixedSlice(as: UInt32.self)
            else { return false }
            // Names are of ASCII in any case.
            if String(buffer: name).lowercased() == "socket-type" { isServer = serverTypes.contains(Array(value.readableBytesView)) }
        }
        return isServer
    }
}
