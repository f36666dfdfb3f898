public import NIOCore
import Synchronization

/// A stream to or from a peer with a negotiated protocol. Several tasks may write, one task at a time may read, on any thread.
///
/// ``read()`` takes all received bytes and opens the receive window again: a slow reader slows down the peer and uses at most 256 KiB. Written bytes
/// are queued until the send window and the socket have room.
///
/// End a stream with ``close()``, with ``finish()`` to keep reading, or with ``reset()``. A ``Host`` closes the streams that it serves.
public final class PeerStream: Sendable {
    /// The queue length in bytes above which ``write(_:)`` waits.
    public static let queueLimit = 256 * 1024

    /// The negotiated protocol id.
    public let protocolID: String
    /// Whether the peer opened it.
    public let isInbound: Bool
    /// The connection on which the stream was opened.
    public let connection: Connection
    let id: UInt32
    private let state = Mutex(State())

    /// The peer at the other end.
    public var peer: PeerID { connection.peer }

    private struct State {
        var inbox = ByteBuffer()
        /// Bytes in the inbox that the yamux session does not count as buffered.
        var uncounted = 0
        var reader: Reader?
        var isReaderCancelled = false
        var isFinishedByPeer = false
        var outbox = CircularBuffer<ByteBuffer>()
        var queued = 0
        var writers: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var nextWriter: UInt64 = 0
        var isFinishing = false
        var isFinished = false
        var isClosed = false
        /// Whether the event loop was notified of queued data.
        var isAnnounced = false
        /// See ``PeerStream/send(_:)``.
        var source: (@Sendable () -> ByteBuffer?)?
        var failure: (any Error)?
        /// The earliest of ``PeerStream/endAfter(_:)``.
        var deadline = NIODeadline.distantFuture

        var isOver: Bool { failure != nil || isFinished && isFinishedByPeer }
        /// Whether there is nothing to read yet.
        var isReaderToWait: Bool { inbox.readableBytes == 0 && !isFinishedByPeer && failure == nil }
    }

    private struct Reader {
        let task: CheckedContinuation<Void, Never>
        /// See ``PeerStream/waitForData(_:)``.
        let handle: (@Sendable (ByteBuffer) -> Bool)?
    }

    init(id: UInt32, protocolID: String, isInbound: Bool, connection: Connection) {
        self.id = id
        self.protocolID = protocolID
        self.isInbound = isInbound
        self.connection = connection
    }

    deinit {
        // Only ended streams are deallocated, since the connection retains open ones. Unread bytes no longer count.
        let left = state.withLock { $0.inbox.readableBytes - $0.uncounted }
        // Not at once: the connection may be about to drop this stream.
        if left > 0 { connection.eventLoop.execute { [connection, id] in connection.consumed(left, on: id) } }
    }

    // MARK: Reading

    /// Returns all received bytes, waiting for some if there are none; nil when the peer finished the stream.
    ///
    /// - Precondition: No other task is reading.
    /// - Throws: ``ConnectionError``, `CancellationError`
    public func read() async throws -> ByteBuffer? {
        while true {
            try Task.checkCancellation()
            if let bytes = try take() { return bytes.readableBytes > 0 ? bytes : nil }
            await waitForData()
        }
    }

    /// Removes all received bytes: nil if there are none yet, empty when the peer finished the stream.
    func take() throws -> ByteBuffer? {
        let (bytes, counted) = try state.withLock { state throws -> (ByteBuffer?, Int) in
            guard state.inbox.readableBytes > 0 else {
                if let failure = state.failure { throw failure }
                return (state.isFinishedByPeer ? ByteBuffer() : nil, 0)
            }
            let counted = state.inbox.readableBytes - state.uncounted
            state.uncounted = 0
            defer { state.inbox = ByteBuffer() }
            return (state.inbox, counted)
        }
        if counted > 0 { connection.consumed(counted, on: id) }
        return bytes
    }

    /// Waits until there is something to ``take()``, or the task is cancelled.
    ///
    /// - Parameter handle: Takes the bytes that arrive meanwhile, on the event loop. The wait ends when it returns false.
    func waitForData(_ handle: (@Sendable (ByteBuffer) -> Bool)? = nil) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    // Checked under the lock: a cancellation from here on finds the continuation.
                    guard state.isReaderToWait, !Task.isCancelled else { return false }
                    precondition(state.reader == nil, "one reader at a time")
                    state.reader = Reader(task: continuation, handle: handle)
                    state.isReaderCancelled = false
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            state.withLock { state in
                defer { state.reader = nil }
                state.isReaderCancelled = true
                return state.reader
            }?.task.resume()
        }
    }

    // MARK: Writing

    /// Queues bytes, waiting until the queue is below ``queueLimit``. Returns before they are sent.
    ///
    /// - Throws: ``ConnectionError``, `CancellationError`
    public func write(_ bytes: ByteBuffer) async throws {
        while true {
            try Task.checkCancellation()
            let isQueued = try state.withLock { state throws -> Bool in
                if let failure = state.failure { throw failure }
                guard !state.isFinishing else { throw ConnectionError.closed }
                guard state.queued < Self.queueLimit else { return false }
                Self.enqueue(bytes, &state)
                return true
            }
            if isQueued {
                connection.charge(bytes.readableBytes)
                return announce()
            }
            await waitForRoom()
        }
    }

    /// The length of the send queue in bytes.
    public var queuedByteCount: Int { state.withLock { $0.queued } }

    /// Whether the stream is closed for writing.
    public var isClosed: Bool { state.withLock { $0.failure != nil || $0.isFinishing } }

    private static func enqueue(_ bytes: ByteBuffer, _ state: inout State) {
        guard bytes.readableBytes > 0 else { return }
        state.outbox.append(bytes)
        state.queued += bytes.readableBytes
    }

    private func waitForRoom() async {
        let number = state.withLock { state in
            state.nextWriter += 1
            return state.nextWriter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    guard state.queued >= Self.queueLimit, !state.isFinishing, state.failure == nil, !Task.isCancelled else { return false }
                    state.writers[number] = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.writers.removeValue(forKey: number) }?.resume()
        }
    }

    /// Sends what `source` returns, as soon as nothing else is queued and the connection is writable, until it returns nil. It is called on the event
    /// loop, and again after ``announce()``. Ends with the stream.
    package func send(_ source: @escaping @Sendable () -> ByteBuffer?) {
        state.withLock { if $0.failure == nil, !$0.isFinishing { $0.source = source } }
        announce()
    }

    /// There is more to send.
    package func announce() {
        let isNew = state.withLock { state in
            defer { state.isAnnounced = true }
            return !state.isAnnounced
        }
        if isNew { connection.hasData(id) }
    }

    // MARK: Ending

    /// Ends writing; queued bytes are still sent. The peer may continue to send.
    public func finish() {
        state.withLock { state in
            state.isFinishing = true
            state.source = nil
        }
        announce()
    }

    /// Ends the stream in both directions immediately and drops queued bytes.
    public func reset() {
        reset(.closed)
    }

    func reset(_ reason: ConnectionError) {
        connection.reset(id, reason)
    }

    /// Ends writing and reading. If the peer does not finish within 10 s, the stream is reset.
    public func close() {
        let isOpen = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed && state.failure == nil
        }
        guard isOpen else { return }
        finish()
        // Unread bytes are dropped and no longer count.
        let dropped = state.withLock { state in
            defer {
                state.inbox = ByteBuffer()
                state.uncounted = 0
            }
            return state.inbox.readableBytes - state.uncounted
        }
        if dropped > 0 { connection.consumed(dropped, on: id) }
        endAfter(.seconds(10))
    }

    /// Resets the stream with ``ConnectionError/timedOut`` within a second after this time unless it ended before.
    public func endAfter(_ limit: TimeAmount) {
        let deadline = connection.eventLoop.now + limit
        state.withLock { $0.deadline = min($0.deadline, deadline) }
    }

    // MARK: Called on the event loop

    /// Whether both sides finished the stream, or it failed.
    var isOver: Bool { state.withLock(\.isOver) }

    /// When the connection resets the stream.
    var deadline: NIODeadline { state.withLock(\.deadline) }

    /// - Returns: false when the stream is closed for reading.
    func deliver(_ data: ByteBuffer) -> Bool {
        state.withLock { state in
            guard !state.isClosed, state.failure == nil else { return false }
            if state.inbox.readableBytes == 0 { state.inbox = data } else { state.inbox.writeImmutableBuffer(data) }
            return true
        }
    }

    func deliverUncounted(_ data: ByteBuffer) {
        guard data.readableBytes > 0 else { return }
        state.withLock { state in
            state.inbox = data
            state.uncounted = data.readableBytes
        }
    }

    func finishInbound() {
        state.withLock { $0.isFinishedByPeer = true }
    }

    /// Passes received bytes to the reader, or wakes it.
    func wakeReader() {
        let reader: Reader? = state.withLock { state in
            guard state.reader != nil else {
                state.inbox.shrink()
                return nil
            }
            // Of several frames in one read, the first call takes all bytes.
            guard !state.isReaderToWait else { return nil }
            defer { state.reader = nil }
            return state.reader
        }
        guard let reader else { return }
        if let handle = reader.handle, let bytes = try? take(), bytes.readableBytes > 0, handle(bytes) {
            let waits = state.withLock { state in
                guard state.isReaderToWait, !state.isReaderCancelled else { return false }
                state.reader = reader
                return true
            }
            if waits { return }
        }
        reader.task.resume()
    }

    /// Writes one frame of queued data to the session if the send window allows it.
    func frameData(_ session: inout YamuxSession) -> (hasMore: Bool, isFinished: Bool) {
        // Called without the lock: it may have one of its own that is held while this stream is notified.
        let source = state.withLock { state in
            state.isAnnounced = false
            return state.queued == 0 ? state.source : nil
        }
        let next = source?()
        var woken: [CheckedContinuation<Void, Never>] = []
        defer { for writer in woken { writer.resume() } }
        return state.withLock { state in
            guard state.failure == nil, !state.isFinished else { return (false, false) }
            if let next {
                Self.enqueue(next, &state)
                connection.charge(next.readableBytes)
            }
            let sent = session.send(state.queued, on: id) { output, count in
                var rest = count
                while rest > 0, var first = state.outbox.popFirst() {
                    let part = min(rest, first.readableBytes)
                    if var slice = first.readSlice(length: part) { output.writeBuffer(&slice) }
                    if first.readableBytes > 0 { state.outbox.prepend(first) }
                    rest -= part
                }
            }
            state.queued -= sent
            connection.charge(-sent)
            if state.queued < Self.queueLimit / 2 {
                woken = Array(state.writers.values)
                state.writers.removeAll()
            }
            if state.queued == 0, state.isFinishing {
                state.isFinished = true
                return (false, true)
            }
            // After the end of a frame the source may have another one.
            let hasMore = state.queued > 0 || sent > 0 && state.source != nil
            return (hasMore && session.sendWindow(id) > 0, false)
        }
    }

    func fail(_ error: any Error) {
        let (reader, writers) = state.withLock { state in
            if state.failure == nil { state.failure = error }
            state.source = nil
            // A reset discards data received before.
            if !state.isFinishedByPeer { state.inbox = ByteBuffer() }
            state.outbox.removeAll()
            connection.charge(-state.queued)
            state.queued = 0
            defer {
                state.reader = nil
                state.writers.removeAll()
            }
            return (state.reader, Array(state.writers.values))
        }
        reader?.task.resume()
        for writer in writers { writer.resume() }
    }
}

extension ByteBuffer {
    /// Copies the bytes if the buffer's storage is much larger: a slice keeps the storage it was cut from alive.
    mutating func shrink() {
        if storageCapacity > 4 * readableBytes + 1_024 { self = ByteBuffer(bytes: readableBytesView) }
    }
}
