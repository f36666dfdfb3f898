public import NIOCore
import Synchronization

/// Reads messages that are prefixed with their length as a varint, the framing of most libp2p protocols. Used by one task at a time, as reading from
/// a ``PeerStream``.
public struct MessageReader: Sendable {
    private let stream: PeerStream
    private let limit: Int
    private var received = ByteBuffer()
    /// Whether the latest batch left out messages that may be complete.
    private var isBatchCut = false
    /// The length of the incomplete message.
    private var expected = 0
    /// Accounts for received bytes, and for an incomplete message with its full length.
    private let charge: MemoryCharge
    /// Timeout for the rest of a long message.
    private var deadline: Deadline?

    /// - Parameter limit: The maximum length of a message in bytes. A longer one resets the stream.
    public init(_ stream: PeerStream, limit: Int) {
        self.stream = stream
        self.limit = limit
        charge = MemoryCharge(stream.connection)
    }

    /// The next message; nil when the peer finished the stream.
    ///
    /// - Throws: ``ConnectionError``: `messageTooLarge` above the limit, `protocolViolation` for an invalid length or when the stream ends within a
    ///   message. `CancellationError`
    public mutating func next() async throws -> ByteBuffer? {
        while true {
            if let message = try take() { return message }
            guard try await fill() else { return nil }
        }
    }

    /// The complete messages that were received, at least one, at most 256 and up to 64 KiB; nil when the peer finished the stream. Other tasks run
    /// between two batches.
    ///
    /// - Throws: As ``next()``
    public mutating func nextBatch() async throws -> [ByteBuffer]? {
        if isBatchCut { await Task.yield() }
        while true {
            let batch = try takeBatch()
            if !batch.isEmpty { return batch }
            guard try await fill() else { return nil }
        }
    }

    private mutating func takeBatch() throws -> [ByteBuffer] {
        var batch: [ByteBuffer] = []
        var byteCount = 0
        while batch.count < Self.batchLimit, byteCount < Self.batchByteLimit, let message = try take() {
            batch.append(message)
            byteCount += message.readableBytes
        }
        isBatchCut = batch.count == Self.batchLimit || byteCount >= Self.batchByteLimit
        return batch
    }

    /// Passes batches, as those of ``nextBatch()``, to `handle` until it returns a value. Batches that arrive while the task waits are handled on the
    /// connection's event loop, without waking the task.
    ///
    /// - Returns: The value; nil when the peer finished the stream.
    package mutating func handleBatches<R: Sendable>(_ handle: @escaping @Sendable ([ByteBuffer]) -> R?) async throws -> R? {
        while let batch = try await nextBatch() {
            if let result = handle(batch) { return result }
            guard !isBatchCut else { continue }
            settle()
            let shared = Mutex((reader: self, result: R?.none))
            await stream.waitForData { bytes in
                shared.withLock { shared in
                    shared.reader.add(bytes)
                    // An error is thrown by the task, which reads the same bytes again.
                    guard let batch = try? shared.reader.takeBatch() else { return false }
                    if !batch.isEmpty { shared.result = handle(batch) }
                    shared.reader.settle()
                    return shared.result == nil && !shared.reader.isBatchCut
                }
            }
            let result = shared.withLock { shared in
                self = shared.reader
                return shared.result
            }
            if let result { return result }
        }
        return nil
    }

    /// The maximum number of messages in a batch: a window of data has room for 262,144 empty ones.
    static let batchLimit = 256
    /// The length in bytes after which a batch ends: a message of a few kilobytes may take long to process, too.
    static let batchByteLimit = 64 * 1024

    private mutating func take() throws -> ByteBuffer? {
        let prefix: (value: UInt64, byteCount: Int)?
        do {
            prefix = try received.getVarint()
        } catch {
            stream.reset()
            throw ConnectionError.protocolViolation("a length is not a varint")
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

    /// A part of a message of this length was received.
    private mutating func expect(_ byteCount: Int) {
        expected = byteCount
        guard deadline == nil, byteCount > Self.smallMessage, stream.isInbound, stream.connection.isInbound else { return }
        deadline = Deadline(stream)
    }

    /// Messages up to this length have no timeout of their own.
    static let smallMessage = 64 * 1024

    /// Resets the stream after the timeout, unless this object is deallocated before.
    private final class Deadline: Sendable {
        private let expiry: Scheduled<Void>

        init(_ stream: PeerStream) {
            let connection = stream.connection
            expiry = connection.eventLoop.scheduleTask(in: connection.partialMessageTimeout) { [weak stream] in stream?.reset(.timedOut) }
        }

        deinit {
            expiry.cancel()
        }
    }

    private mutating func fill() async throws -> Bool {
        settle()
        guard let bytes = try await stream.read() else {
            guard received.readableBytes == 0 else { throw ConnectionError.protocolViolation("the stream ends within a message") }
            return false
        }
        add(bytes)
        return true
    }

    private mutating func add(_ bytes: ByteBuffer) {
        if received.readableBytes == 0 {
            received = bytes
        } else {
            received.discardReadBytes()
            received.writeImmutableBuffer(bytes)
        }
        // Returned messages are accounted for until more is read, since the caller holds them.
        charge.set(max(expected, received.readableBytes))
    }

    /// Keeps an incomplete message only.
    private mutating func settle() {
        received.shrink()
        charge.set(max(expected, received.readableBytes))
    }
}

/// The messages of a stream, in batches of those received together.
public struct MessageBatches: AsyncSequence {
    fileprivate let stream: PeerStream
    fileprivate let limit: Int

    /// Starts to read at the stream's current position. Call it once per stream: a second iterator would take messages from the first.
    public func makeAsyncIterator() -> Iterator {
        Iterator(reader: MessageReader(stream, limit: limit))
    }

    /// The iterator, which ends when the peer finishes the stream.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var reader: MessageReader

        /// The next batch, at least one message. Waits and throws as ``MessageReader/nextBatch()``.
        public mutating func next() async throws -> [ByteBuffer]? {
            try await reader.nextBatch()
        }
    }
}

extension PeerStream {
    /// The length-prefixed messages of the stream, of at most `limit` bytes each. A longer one resets the stream.
    public func messages(limit: Int) -> MessageBatches {
        MessageBatches(stream: self, limit: limit)
    }

    /// Writes a message with its length as a prefix. Waits and throws as ``write(_:)``.
    public func writeMessage(_ message: ByteBuffer) async throws {
        try await write(Self.delimited(message))
    }

    /// A message with its length as a prefix. Use it to prepare a message once for several peers.
    public static func delimited(_ message: ByteBuffer) -> ByteBuffer {
        var bytes = ByteBuffer()
        bytes.reserveCapacity(message.readableBytes + 9)
        bytes.writeVarint(UInt64(message.readableBytes))
        bytes.writeImmutableBuffer(message)
        return bytes
    }
}
