public import NIOCore

/// Reads messages that stand after their length as a varint, as most of libp2p's protocols have them.
public struct MessageReader {
    private let stream: PeerStream
    private let limit: Int
    private var received = ByteBuffer()
    /// For the message of which `received` is a part, if it needs one.
    private var reservation: PartRoom.Reservation?

    /// A message of more than `limit` bytes ends the stream.
    public init(_ stream: PeerStream, limit: Int) {
        self.stream = stream
        self.limit = limit
    }

    /// The next message, or nil when the peer has finished.
    ///
    /// - Throws: ``ConnectionError``; `protocolViolation` if it finished within a message.
    public mutating func next() async throws -> ByteBuffer? {
        while true {
            if let message = try take() { return message }
            guard try await fill() else { return nil }
        }
    }

    /// All whole messages that have come, one at least, or nil when the peer has finished.
    ///
    /// - Throws: as ``next()``
    public mutating func nextBatch() async throws -> [ByteBuffer]? {
        var batch: [ByteBuffer] = []
        while true {
            while let message = try take() { batch.append(message) }
            if !batch.isEmpty { return batch }
            guard try await fill() else { return nil }
        }
    }

    private mutating func take() throws -> ByteBuffer? {
        let prefix: (value: UInt64, byteCount: Int)?
        do {
            prefix = try received.getVarint()
        } catch {
            stream.reset()
            throw ConnectionError.protocolViolation("a length is no varint")
        }
        guard let prefix else { return nil }
        guard prefix.value <= UInt64(limit) else {
            stream.reset()
            throw ConnectionError.messageTooLarge
        }
        guard received.readableBytes >= prefix.byteCount + Int(prefix.value) else {
            try reserve(Int(prefix.value))
            return nil
        }
        reservation = nil
        received.moveReaderIndex(forwardBy: prefix.byteCount)
        return received.readSlice(length: Int(prefix.value))
    }

    private mutating func reserve(_ byteCount: Int) throws {
        guard reservation == nil, byteCount > PartRoom.smallMessage, stream.isInbound, stream.connection.isInbound else { return }
        reservation = stream.connection.partRoom.reserve(byteCount, for: stream)
        guard reservation != nil else {
            stream.reset()
            throw ConnectionError.noRoom
        }
    }

    private mutating func fill() async throws -> Bool {
        received.shrink()
        guard var bytes = try await stream.read() else {
            guard received.readableBytes == 0 else { throw ConnectionError.protocolViolation("the stream ends within a message") }
            return false
        }
        if received.readableBytes == 0 {
            received = bytes
        } else {
            received.discardReadBytes()
            received.writeBuffer(&bytes)
        }
        return true
    }
}

/// Messages as they come, in batches of what has come at once.
public struct MessageBatches: AsyncSequence {
    fileprivate let stream: PeerStream
    fileprivate let limit: Int

    public func makeAsyncIterator() -> Iterator {
        Iterator(reader: MessageReader(stream, limit: limit))
    }

    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var reader: MessageReader

        public mutating func next() async throws -> [ByteBuffer]? {
            try await reader.nextBatch()
        }
    }
}

extension PeerStream {
    /// Messages after their length as a varint, of at most `limit` bytes each.
    public func messages(limit: Int) -> MessageBatches {
        MessageBatches(stream: self, limit: limit)
    }

    /// Writes one after its length, as ``write(_:)``.
    public func writeMessage(_ message: ByteBuffer) async throws {
        try await write(Self.delimited(message))
    }

    /// A message after its length, as one that goes to several peers is prepared once.
    public static func delimited(_ message: ByteBuffer) -> ByteBuffer {
        var bytes = ByteBuffer()
        bytes.reserveCapacity(message.readableBytes + 9)
        bytes.writeVarint(UInt64(message.readableBytes))
        bytes.writeImmutableBuffer(message)
        return bytes
    }
}
