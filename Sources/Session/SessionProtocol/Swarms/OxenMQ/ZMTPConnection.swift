import NIOCore

/// A client's connection of ZMTP 3.1 with the mechanism NULL or CURVE, without I/O: the server's bytes in; messages, and bytes for the server, out.
/// RFC 23, 26 and 37, and libzmq's form of CURVE: after the handshake every frame is a MESSAGE, those of commands too.
///
///     greeting ──▶   ◀── greeting      NULL    READY ──▶   ◀── READY ──────────────────────────────┐
///                                      CURVE   HELLO ──▶   ◀── WELCOME   INITIATE ──▶   ◀── READY ──┴──▶ open
///
///     greeting   FF 0(8) 7F ‖ version 03 01 ‖ mechanism(20, padded with 0) ‖ 0(32)
///     frame      flags(1) ‖ length(1; 8 if long, big-endian) ‖ body      flags: 1 more parts follow, 2 long, 4 command
///     command    length of the name(1) ‖ name ‖ data
///     metadata   (length(1) ‖ name ‖ length(4) ‖ value)…
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

    private enum Flag {
        static let more: UInt8 = 1
        static let long: UInt8 = 2
        static let command: UInt8 = 4
        /// Of a command in a box of CURVE.
        static let sealedCommand: UInt8 = 2
    }

    private static let greetingByteCount = 64
    /// Limit of a command of the handshake.
    private static let handshakeLimit = 4096
    /// With so many bytes to send, PINGs are not answered: a server that does not read could make them grow.
    private static let answerLimit = 64 << 10
    /// Limit of the context that a PING has and its PONG repeats.
    private static let contextLimit = 16
    /// The types of sockets that a DEALER may talk to.
    private static let serverTypes = ["REP", "DEALER", "ROUTER"].map { Array($0.utf8) }
    private static let metadata = property("Socket-Type", "DEALER") + property("Identity", "")

    private var state: State
    private let maximumPartByteCount: Int
    private var inbound = ByteBuffer()
    private var outbound = ByteBuffer()
    /// Of a message whose last part has not arrived.
    private var parts: [[UInt8]] = []
    private var partByteCount = 0

    /// - Parameter curve: nil for the mechanism NULL.
    init(curve: CurveHandshake?, maximumPartByteCount: Int) {
        state = .greeting(curve)
        self.maximumPartByteCount = maximumPartByteCount
        outbound.writeBytes([0xFF] + [UInt8](repeating: 0, count: 8) + [0x7F, 3, 1])
        outbound.writeBytes(Self.mechanism(of: curve) + [UInt8](repeating: 0, count: 32))
    }

    var isOpen: Bool { if case .open = state { true } else { false } }

    /// The bytes of the server that are no event yet.
    var heldByteCount: Int { inbound.readableBytes + partByteCount }

    // MARK: Receiving

    /// Takes bytes of the server. ``next()`` returns their events.
    mutating func receive(_ bytes: ByteBuffer) {
        if inbound.readableBytes == 0 {
            inbound = bytes
        } else {
            inbound.discardReadBytes()
            inbound.writeImmutableBuffer(bytes)
        }
    }

    /// The next event; nil until more bytes were received.
    ///
    /// - Throws: why the connection must end.
    mutating func next() throws(OxenMQClient.Reason) -> Event? {
        while true {
            if case .greeting(let curve) = state {
                guard inbound.readableBytes >= Self.greetingByteCount else { return nil }
                try readGreeting(curve)
                continue
            }
            guard let frame = try readFrame() else {
                shrink()
                return nil
            }
            if let event = try received(frame) { return event }
        }
    }

    private mutating func readGreeting(_ curve: CurveHandshake?) throws(OxenMQClient.Reason) {
        guard let greeting = inbound.readBytes(length: Self.greetingByteCount), greeting[0] == 0xFF, greeting[9] & 1 == 1,
            greeting[10] >= 3, greeting[12..<32].elementsEqual(Self.mechanism(of: curve))
        else { throw .handshakeFailed }
        if let curve {
            state = .welcome(curve)
            write(curve.hello, flags: Flag.command)
        } else {
            state = .ready(nil)
            write([5] + Array("READY".utf8) + Self.metadata, flags: Flag.command)
        }
    }

    /// The frame at the beginning of the received bytes; nil if its end has not arrived. A frame that is too large is refused at its header.
    private mutating func readFrame() throws(OxenMQClient.Reason) -> (flags: UInt8, body: [UInt8])? {
        var reader = inbound
        guard let flags: UInt8 = reader.readInteger() else { return nil }
        let length = flags & Flag.long == 0 ? reader.readInteger(as: UInt8.self).map(UInt64.init) : reader.readInteger(as: UInt64.self)
        guard let length else { return nil }
        let limit =
            switch state {
            case .open(nil): maximumPartByteCount
            case .open: maximumPartByteCount + CurveSession.overhead
            default: Self.handshakeLimit
            }
        guard length <= limit else { throw isOpen ? .partTooLarge : .handshakeFailed }
        guard let body = reader.readBytes(length: Int(length)) else { return nil }
        inbound = reader
        return (flags, body)
    }

    /// Keeps a few bytes that wait for the rest of their frame without the large buffer that they came in.
    mutating func shrink() {
        if inbound.readableBytes < inbound.storageCapacity / 2 { inbound = ByteBuffer(bytes: inbound.readableBytesView) }
    }

    private mutating func received(_ frame: (flags: UInt8, body: [UInt8])) throws(OxenMQClient.Reason) -> Event? {
        switch state {
        case .open(let session): return try received(frame, session)
        case .greeting: return nil
        case .welcome(let curve):
            // Also an ERROR ends here, and any message.
            guard let (command, session) = try? curve.initiate(answering: frame.body, metadata: Self.metadata) else {
                throw .handshakeFailed
            }
            state = .ready(session)
            write(command, flags: Flag.command)
            return nil
        case .ready(var session):
            let metadata = session == nil ? Self.metadata(ofReady: frame.body) : try? session?.open(ready: frame.body)
            guard let metadata, Self.isFromServer(metadata) else { throw .handshakeFailed }
            state = .open(session)
            return .opened
        }
    }

    /// Receives a frame after the handshake.
    private mutating func received(
        _ frame: (flags: UInt8, body: [UInt8]), _ session: CurveSession?
    ) throws(OxenMQClient.Reason) -> Event? {
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
        guard outbound.readableBytes < Self.answerLimit else { return }
        send(command: [4] + Array("PONG".utf8) + command[7...].prefix(Self.contextLimit))
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
        send(command: [4] + Array("PING".utf8) + [0, 0])
    }

    private mutating func send(command: [UInt8]) {
        send(command, flags: Flag.command, sealedFlags: Flag.sealedCommand)
    }

    private mutating func send(_ body: [UInt8], flags: UInt8, sealedFlags: UInt8) {
        guard case .open(let session) = state else { return }
        guard var session else { return write(body, flags: flags) }
        write(session.seal(body, flags: sealedFlags), flags: 0)
        state = .open(session)
    }

    private mutating func write(_ body: [UInt8], flags: UInt8) {
        if let length = UInt8(exactly: body.count) {
            outbound.writeMultipleIntegers(flags, length)
        } else {
            outbound.writeMultipleIntegers(flags | Flag.long, UInt64(body.count))
        }
        outbound.writeBytes(body)
    }

    var outboundByteCount: Int { outbound.readableBytes }

    /// The bytes to send; nil if there are none.
    mutating func takeOutbound() -> ByteBuffer? {
        guard outbound.readableBytes > 0 else { return nil }
        defer { outbound = ByteBuffer() }
        return outbound
    }

    // MARK: Metadata

    private static func mechanism(of curve: CurveHandshake?) -> [UInt8] {
        let name = Array((curve == nil ? "NULL" : "CURVE").utf8)
        return name + [UInt8](repeating: 0, count: 20 - name.count)
    }

    private static func property(_ name: String, _ value: String) -> [UInt8] {
        // Both are shorter than 256 bytes.
        [UInt8(name.utf8.count)] + Array(name.utf8) + [0, 0, 0, UInt8(value.utf8.count)] + Array(value.utf8)
    }

    private static func metadata(ofReady command: [UInt8]) -> [UInt8]? {
        let name = [5] + Array("READY".utf8)
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
