import NIOCore

/// A yamux session: multiplexes streams over one connection. Bytes and calls go in; events and ``output`` come out. It buffers no stream data:
/// received data is passed on in pieces as it arrives, and sent data is framed when the window allows it.
struct YamuxSession {
    /// The initial window of each stream, set by the specification.
    static let initialWindow: UInt32 = 256 * 1024
    /// The part of it that is used before the peer's first update: nim-libp2p had 256,000 bytes, and ends the connection at more.
    static let initialSendWindow: UInt64 = 256_000
    /// The maximum data of a sent frame, which fits into one Noise frame.
    static let dataLimit = NoiseTransport.plainLimit - YamuxHeader.byteCount

    struct Limits: Sendable {
        /// The maximum number of open streams that the peer opened.
        var inboundStreams = 256
        /// The maximum number of open streams that this node opened.
        var outboundStreams = 256
        /// The maximum number of received and not consumed bytes of all streams. The stream that exceeds it is reset.
        var bufferedBytes = 4 * 1024 * 1024
        /// The maximum size of responses in ``output``.
        var answerBytes = 64 * 1024
    }

    enum Event: Hashable {
        /// The peer opened a stream.
        case opened(UInt32)
        case data(UInt32, ByteBuffer)
        /// The peer will send no more data.
        case finished(UInt32)
        /// The stream ended in both directions.
        case reset(UInt32)
        /// More data may be sent.
        case windowGrew(UInt32)
        case goAway(code: UInt32)
    }

    private struct Stream {
        var sendWindow = YamuxSession.initialSendWindow
        /// How much the peer may still send.
        var receiveWindow = YamuxSession.initialWindow
        /// Received and not consumed bytes.
        var buffered: UInt32 = 0
        /// Consumed bytes that were not returned to the window yet.
        var owed: UInt32 = 0
        var isFinished = false
        var isFinishedByPeer = false
    }

    private let role: NoiseHandshake.Role
    private let limits: Limits
    private var streams: [UInt32: Stream] = [:]
    private var inboundCount = 0
    private var nextStream: UInt32
    /// Received and not consumed bytes of all streams.
    private(set) var bufferedBytes = 0
    /// The bytes still missing of an incomplete data frame.
    private var unfinished: (stream: UInt32, count: Int, flags: YamuxHeader.Flags)?
    private var hasGoneAway = false
    /// Frames to send. The caller removes them.
    var output = ByteBuffer()

    init(_ role: NoiseHandshake.Role, limits: Limits = Limits()) {
        self.role = role
        self.limits = limits
        nextStream = role == .initiator ? 1 : 2
    }

    var streamCount: Int { streams.count }

    // MARK: Receiving

    /// Consumes `input` except for an incomplete header, and appends events.
    ///
    /// - Throws: ``YamuxError``: the session must be closed.
    mutating func receive(_ input: inout ByteBuffer, _ events: inout [Event]) throws(YamuxError) {
        while true {
            if let (stream, count, flags) = unfinished {
                guard input.readableBytes > 0 || count == 0 else { return }
                guard let data = input.readSlice(length: min(count, input.readableBytes)) else { return }
                unfinished = count == data.readableBytes ? nil : (stream, count - data.readableBytes, flags)
                receiveData(data, of: stream, events: &events)
                if unfinished == nil { end(stream, flags: flags, events: &events) }
                continue
            }
            guard let header = try YamuxHeader(takingFrom: &input) else { return }
            try receive(header, &events)
            guard output.readableBytes <= limits.answerBytes else { throw .answersUnread }
        }
    }

    private mutating func receive(_ header: YamuxHeader, _ events: inout [Event]) throws(YamuxError) {
        switch header.kind {
        case .ping:
            guard header.flags.contains(.syn) else { break }
            YamuxHeader(.ping, .ack, stream: 0, length: header.length).write(to: &output)
        case .goAway:
            hasGoneAway = true
            events.append(.goAway(code: header.length))
        case .data:
            try open(header, &events)
            let count = Int(header.length)
            if var stream = streams[header.stream] {
                guard header.length <= stream.receiveWindow else { throw .windowExceeded }
                stream.receiveWindow -= header.length
                streams[header.stream] = stream
            } else {
                // Sent before the peer learned that the stream ended: at most a window of data.
                guard header.length <= Self.initialWindow else { throw .windowExceeded }
            }
            unfinished = (header.stream, count, header.flags)
        case .windowUpdate:
            try open(header, &events)
            if var stream = streams[header.stream], header.length > 0 {
                stream.sendWindow = min(stream.sendWindow + UInt64(header.length), UInt64(UInt32.max))
                streams[header.stream] = stream
                events.append(.windowGrew(header.stream))
            }
            end(header.stream, flags: header.flags, events: &events)
        }
    }

    private mutating func open(_ header: YamuxHeader, _ events: inout [Event]) throws(YamuxError) {
        guard header.flags.contains(.syn) else { return }
        // The initiator of the connection assigns odd ids.
        guard header.stream != 0, header.stream.isMultiple(of: 2) == (role == .initiator), streams[header.stream] == nil else {
            throw .invalidStream
        }
        guard inboundCount < limits.inboundStreams else {
            YamuxHeader(.windowUpdate, .rst, stream: header.stream, length: 0).write(to: &output)
            return
        }
        streams[header.stream] = Stream()
        inboundCount += 1
        YamuxHeader(.windowUpdate, .ack, stream: header.stream, length: 0).write(to: &output)
        events.append(.opened(header.stream))
    }

    private mutating func receiveData(_ data: ByteBuffer, of id: UInt32, events: inout [Event]) {
        guard data.readableBytes > 0, streams[id] != nil else { return }
        guard bufferedBytes + data.readableBytes <= limits.bufferedBytes else {
            reset(id)
            events.append(.reset(id))
            return
        }
        streams[id]?.buffered += UInt32(data.readableBytes)
        bufferedBytes += data.readableBytes
        events.append(.data(id, data))
    }

    private mutating func end(_ id: UInt32, flags: YamuxHeader.Flags, events: inout [Event]) {
        guard let stream = streams[id] else { return }
        if flags.contains(.rst) {
            remove(id)
            events.append(.reset(id))
        } else if flags.contains(.fin), !stream.isFinishedByPeer {
            streams[id]?.isFinishedByPeer = true
            removeIfOver(id)
            events.append(.finished(id))
        }
    }

    // MARK: Sending

    /// Opens a stream; nil if the limit is reached or the session ended.
    mutating func open() -> UInt32? {
        guard streams.count - inboundCount < limits.outboundStreams, !hasGoneAway, nextStream < UInt32.max - 2 else { return nil }
        let id = nextStream
        nextStream += 2
        streams[id] = Stream()
        YamuxHeader(.windowUpdate, .syn, stream: id, length: 0).write(to: &output)
        return id
    }

    /// The number of bytes that may be sent at present.
    func sendWindow(_ id: UInt32) -> Int {
        guard let stream = streams[id], !stream.isFinished else { return 0 }
        return Int(stream.sendWindow)
    }

    /// Sends one frame of as many bytes from the front of `data` as the window allows.
    ///
    /// - Returns: The number of bytes.
    mutating func send(_ data: inout ByteBuffer, on id: UInt32) -> Int {
        send(min(data.readableBytes, Self.dataLimit), on: id) { output, count in
            guard var slice = data.readSlice(length: count) else { return }
            output.writeBuffer(&slice)
        }
    }

    /// Sends one frame of as many of the `available` bytes as the window allows; `write` appends that many bytes.
    mutating func send(_ available: Int, on id: UInt32, write: (inout ByteBuffer, Int) -> Void) -> Int {
        let count = min(available, Self.dataLimit, sendWindow(id))
        guard count > 0 else { return 0 }
        streams[id]?.sendWindow -= UInt64(count)
        YamuxHeader(.data, stream: id, length: UInt32(count)).write(to: &output)
        write(&output, count)
        return count
    }

    /// Returns consumed bytes to the stream's window, in window updates of at least half of it.
    mutating func consumed(_ count: Int, on id: UInt32) {
        guard var stream = streams[id] else { return }
        let taken = min(UInt32(clamping: count), stream.buffered)
        stream.buffered -= taken
        bufferedBytes -= Int(taken)
        stream.owed += taken
        if stream.owed >= Self.initialWindow / 2, !stream.isFinishedByPeer {
            YamuxHeader(.windowUpdate, stream: id, length: stream.owed).write(to: &output)
            stream.receiveWindow += stream.owed
            stream.owed = 0
        }
        streams[id] = stream
        removeIfOver(id)
    }

    /// Ends sending on a stream.
    mutating func finish(_ id: UInt32) {
        guard streams[id]?.isFinished == false else { return }
        streams[id]?.isFinished = true
        YamuxHeader(.windowUpdate, .fin, stream: id, length: 0).write(to: &output)
        removeIfOver(id)
    }

    /// Ends a stream in both directions.
    mutating func reset(_ id: UInt32) {
        guard streams[id] != nil else { return }
        YamuxHeader(.windowUpdate, .rst, stream: id, length: 0).write(to: &output)
        remove(id)
    }

    mutating func ping(_ number: UInt32) {
        YamuxHeader(.ping, .syn, stream: 0, length: number).write(to: &output)
    }

    mutating func goAway(_ code: GoAwayCode) {
        YamuxHeader(.goAway, stream: 0, length: code.rawValue).write(to: &output)
        hasGoneAway = true
    }

    enum GoAwayCode: UInt32 {
        case normal = 0
        case protocolError = 1
        case internalError = 2
    }

    /// Removes a stream that ended, once all its data was consumed: it counts until then.
    private mutating func removeIfOver(_ id: UInt32) {
        if let stream = streams[id], stream.isFinished, stream.isFinishedByPeer, stream.buffered == 0 { remove(id) }
    }

    private mutating func remove(_ id: UInt32) {
        guard let stream = streams.removeValue(forKey: id) else { return }
        bufferedBytes -= Int(stream.buffered)
        if id.isMultiple(of: 2) == (role == .initiator) { inboundCount -= 1 }
    }
}
