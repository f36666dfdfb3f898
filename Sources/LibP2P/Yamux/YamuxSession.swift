import NIOCore

/// Many streams over one connection, by yamux. Bytes and calls go in; events and ``output`` come out. It holds no data: what comes is passed on in
/// pieces as it comes, and what is sent is framed when there is room.
struct YamuxSession {
    /// The window of each stream at its start, which the specification sets.
    static let initialWindow: UInt32 = 256 * 1024
    /// Data of a frame that we send: one frame of Noise holds it.
    static let dataLimit = NoiseTransport.plainLimit - YamuxHeader.byteCount

    struct Limits: Sendable {
        /// Open at a time.
        var inboundStreams = 256
        var outboundStreams = 256
        /// Data that came and were not consumed, in all streams. Beyond it the stream that they are for is reset.
        var bufferedBytes = 4 * 1024 * 1024
        /// Answers that wait in ``output``.
        var answerBytes = 64 * 1024
    }

    enum Event: Hashable {
        /// By the other side.
        case opened(UInt32)
        case data(UInt32, ByteBuffer)
        /// No more data will come.
        case finished(UInt32)
        /// Nothing goes either way any more.
        case reset(UInt32)
        /// More may be sent.
        case windowGrew(UInt32)
        case pong(UInt32)
        case goAway(code: UInt32)
    }

    private struct Stream {
        var sendWindow = UInt64(YamuxSession.initialWindow)
        /// What the other side may send still.
        var receiveWindow = YamuxSession.initialWindow
        /// Came, and was not consumed.
        var buffered: UInt32 = 0
        /// Consumed, and not given back to the window.
        var owed: UInt32 = 0
        var isFinished = false
        var isFinishedByPeer = false
    }

    private let role: NoiseHandshake.Role
    private let limits: Limits
    private var streams: [UInt32: Stream] = [:]
    private var inboundCount = 0
    private var nextStream: UInt32
    /// Came, and was not consumed, in all streams.
    private(set) var bufferedBytes = 0
    /// Of a data frame whose data are not all there: how much is to come.
    private var unfinished: (stream: UInt32, count: Int, flags: YamuxHeader.Flags)?
    private var hasGoneAway = false
    /// Frames that wait to be sent. The caller takes them.
    var output = ByteBuffer()

    init(_ role: NoiseHandshake.Role, limits: Limits = Limits()) {
        self.role = role
        self.limits = limits
        nextStream = role == .initiator ? 1 : 2
    }

    var streamCount: Int { streams.count }
    var inboundStreamCount: Int { inboundCount }

    // MARK: Receiving

    /// Takes what is there off the front of `input`, all but a part of a header, and appends what happened.
    ///
    /// - Throws: ``YamuxError``: the session is at its end.
    mutating func receive(_ input: inout ByteBuffer, _ events: inout [Event]) throws(YamuxError) {
        while true {
            if let (stream, count, flags) = unfinished {
                guard input.readableBytes > 0 || count == 0 else { return }
                guard let data = input.readSlice(length: min(count, input.readableBytes)) else { return }
                unfinished = count == data.readableBytes ? nil : (stream, count - data.readableBytes, flags)
                receiveData(data, stream, &events)
                if unfinished == nil { end(stream, flags, &events) }
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
            if header.flags.contains(.syn) {
                YamuxHeader(.ping, .ack, stream: 0, length: header.length).write(to: &output)
            } else {
                events.append(.pong(header.length))
            }
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
                // Sent before the other side heard of the stream's end: at most a window of it.
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
            end(header.stream, header.flags, &events)
        }
    }

    private mutating func open(_ header: YamuxHeader, _ events: inout [Event]) throws(YamuxError) {
        guard header.flags.contains(.syn) else { return }
        // The connection's initiator gives the odd numbers.
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

    private mutating func receiveData(_ data: ByteBuffer, _ id: UInt32, _ events: inout [Event]) {
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

    private mutating func end(_ id: UInt32, _ flags: YamuxHeader.Flags, _ events: inout [Event]) {
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

    /// Opens a stream; nil if there are as many as there may be, or the session is at its end.
    mutating func open() -> UInt32? {
        guard streams.count - inboundCount < limits.outboundStreams, !hasGoneAway, nextStream < UInt32.max - 2 else { return nil }
        let id = nextStream
        nextStream += 2
        streams[id] = Stream()
        YamuxHeader(.windowUpdate, .syn, stream: id, length: 0).write(to: &output)
        return id
    }

    /// How much may be sent at the moment.
    func sendWindow(_ id: UInt32) -> Int {
        guard let stream = streams[id], !stream.isFinished else { return 0 }
        return Int(stream.sendWindow)
    }

    /// Frames what the window allows, at most a frame of it, and takes it off the front of `data`.
    ///
    /// - Returns: how much.
    mutating func send(_ data: inout ByteBuffer, on id: UInt32) -> Int {
        send(min(data.readableBytes, Self.dataLimit), on: id) { output, count in
            guard var slice = data.readSlice(length: count) else { return }
            output.writeBuffer(&slice)
        }
    }

    /// Frames as much of `available` as the window allows, at most a frame of it; `write` appends so many bytes.
    mutating func send(_ available: Int, on id: UInt32, write: (inout ByteBuffer, Int) -> Void) -> Int {
        let count = min(available, Self.dataLimit, sendWindow(id))
        guard count > 0 else { return 0 }
        streams[id]?.sendWindow -= UInt64(count)
        YamuxHeader(.data, stream: id, length: UInt32(count)).write(to: &output)
        write(&output, count)
        return count
    }

    /// Gives data that came back to the stream's window, by halves of it.
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

    /// Says that no more data will come from here.
    mutating func finish(_ id: UInt32) {
        guard streams[id]?.isFinished == false else { return }
        streams[id]?.isFinished = true
        YamuxHeader(.windowUpdate, .fin, stream: id, length: 0).write(to: &output)
        removeIfOver(id)
    }

    /// Ends it both ways.
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

    /// Not before its data were consumed: they count till then.
    private mutating func removeIfOver(_ id: UInt32) {
        if let stream = streams[id], stream.isFinished, stream.isFinishedByPeer, stream.buffered == 0 { remove(id) }
    }

    private mutating func remove(_ id: UInt32) {
        guard let stream = streams.removeValue(forKey: id) else { return }
        bufferedBytes -= Int(stream.buffered)
        if id.isMultiple(of: 2) == (role == .initiator) { inboundCount -= 1 }
    }
}
