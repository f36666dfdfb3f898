public import NIOCore

/// Reads messages that stand after their length as a varint, as most of libp2p's protocols have them.
public struct MessageReader {
    private let stream: PeerStream
    private let limit: Int
    private var received = ByteBuffer()
    /// The length of the message of which a part has come.
    private var expected = 0
    /// For what has come and, of a message of which a part has come, for its whole length.
    private let charge: MemoryCharge
    /// For the rest of a long message.
    private var deadline: Deadline?

    /// A message of more than `limit` bytes ends the stream.
    public init(_ stream: PeerStream, limit: Int) {
        self.stream = stream
        self.limit = limit
        charge = MemoryCharge(stream.connection)
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
            expect(Int(prefix.value))
            return nil
        }
        deadline = nil
        expected = 0
        received.moveReaderIndex(forwardBy: prefix.byteCount)
        return received.readSlice(length: Int(prefix.value))
    }

    /// A part of a message of this length has come.
    private mutating func expect(_ byteCount: Int) {
        expected = byteCount
        guard deadline == nil, byteCount > Self.smallMessage, stream.isInbound, stream.connection.isInbound else { return }
        deadline = Deadline(stream)
    }

    /// A message of no more than this has all the time that its stream has.
    static let smallMessage = 64 * 1024

    /// Resets the stream when its time is over, unless it is let go of before.
    private final class Deadline: Sendable {
        private let expiry: Scheduled<Void>

        init(_ stream: PeerStream) {
            expiry = stream.connection.schedule(in: stream.connection.partTimeout) { [weak stream] in stream?.reset(.timedOut) }
        }

        deinit {
            expiry.cancel()
        }
    }

    private mutating func fill() async throws -> Bool {
        received.shrink()
        charge.set(max(expected, received.readableBytes))
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
        // The messages in it count until more is read: the caller has them.
        charge.set(max(expected, received.readableBytes))
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
