import NIOCore

/// A secured connection to a peer, on which streams are multiplexed. All methods may be called from any thread.
///
/// It is owned by its ``Host``, which opens streams on it and closes it. ``HostEvent/disconnected(_:_:)`` reports its end.
public final class Connection: Sendable {
    /// The peer, as proven by the Noise handshake.
    public let peer: PeerID
    /// The peer's address, with its peer id; nil for a transport without addresses.
    public let remoteAddress: Multiaddr?
    /// Whether the peer dialed this node.
    public let isInbound: Bool
    let openedAt: NIODeadline
    let eventLoop: any EventLoop
    /// Runs tasks on the connection's event loop: those that read its streams or write to them do not change threads for each message. For short work
    /// only, since other connections share the loop.
    public let executor: any TaskExecutor
    /// Identifies the channel in the host's ``InboundTable``.
    let channelID: ObjectIdentifier
    /// The memory used by this connection.
    let memory: MemoryAccount
    /// Timeout for the rest of an incomplete long message.
    let partialMessageTimeout: TimeAmount
    private let handler: NIOLoopBound<ConnectionHandler>
    private let closeFuture: EventLoopFuture<Void>
    private let traffic: Traffic

    init(
        peer: PeerID, remoteAddress: Multiaddr?, isInbound: Bool, openedAt: NIODeadline, handler: ConnectionHandler,
        channelID: ObjectIdentifier, eventLoop: any EventLoop, closeFuture: EventLoopFuture<Void>, traffic: Traffic, memory: MemoryAccount,
        partialMessageTimeout: TimeAmount
    ) {
        self.peer = peer
        self.remoteAddress = remoteAddress
        self.isInbound = isInbound
        self.openedAt = openedAt
        self.handler = NIOLoopBound(handler, eventLoop: eventLoop)
        self.eventLoop = eventLoop
        executor = EventLoopExecutor(eventLoop)
        self.closeFuture = closeFuture
        self.traffic = traffic
        self.channelID = channelID
        self.memory = memory
        self.partialMessageTimeout = partialMessageTimeout
    }

    /// Bytes received on this connection, as on the wire: with handshake and encryption.
    public var bytesReceived: Int { traffic.bytesReceived }
    /// Bytes sent on this connection, as on the wire: with handshake and encryption.
    public var bytesSent: Int { traffic.bytesSent }

    /// Returns when the connection was closed, which the host knows by then. Does not end early when the task is cancelled.
    package func waitUntilClosed() async {
        try? await closeFuture.get()
    }

    /// Whether there are written bytes of streams that the peer's system has not acknowledged. A socket that is closed before may drop them.
    package var isSending: Bool {
        get async {
            let isSending = eventLoop.flatSubmit { self.handler.value.isSending(on: self.eventLoop) }
            return (try? await isSending.get()) ?? false
        }
    }

    /// Opens a stream with the first of these protocols that the peer supports.
    ///
    /// - Throws: ``ConnectionError``, ``MultistreamError``
    func openStream(_ protocolIDs: [String], within limit: TimeAmount) async throws -> PeerStream {
        let promise = eventLoop.makePromise(of: PeerStream.self)
        eventLoop.execute { self.handler.value.openStream(protocolIDs, within: limit, promise) }
        return try await promise.futureResult.get()
    }

    /// Sends a go-away and ends all streams.
    func close(_ reason: ConnectionError) {
        eventLoop.execute { self.handler.value.close(reason) }
    }

    // MARK: Called by streams, from any thread

    func hasData(_ stream: UInt32) {
        eventLoop.execute { self.handler.value.hasData(stream) }
    }

    func consumed(_ count: Int, on stream: UInt32) {
        guard !eventLoop.inEventLoop else { return handler.value.consumed(count, on: stream) }
        eventLoop.execute { self.handler.value.consumed(count, on: stream) }
    }

    func reset(_ stream: UInt32, _ reason: ConnectionError) {
        eventLoop.execute { self.handler.value.reset(stream, reason) }
    }

    /// Changes the memory accounted to this connection. May asynchronously close this connection or a less useful one.
    func charge(_ byteCount: Int) {
        if memory.add(byteCount) { eventLoop.execute { self.handler.value.owner.relieveMemory() } }
    }
}

/// Why a connection or a stream ended.
public enum ConnectionError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The peer ended it.
    case closedByPeer
    /// This node ended it.
    case closed
    /// A handshake step, a stream or a response took too long.
    case timedOut
    /// The peer violated the protocol, described by the text.
    case protocolViolation(String)
    /// The limit of open streams was reached.
    case tooManyStreams
    /// Another connection to the same peer was kept.
    case replaced
    /// A connection limit was reached.
    case refused
    /// There is no connection to the peer.
    case notConnected
    /// A message is longer than its reader allows.
    case messageTooLarge
    /// It was the least useful connection, and was closed in favor of another peer's.
    case evicted
    /// It used too much memory while the limit for all peers was exceeded.
    case tooMuchMemory

    /// The reason, one phrase for an operator.
    public var description: String {
        switch self {
        case .closedByPeer: "the peer closed the connection or the stream"
        case .closed: "this node closed the connection"
        case .timedOut: "the peer did not respond in time"
        case .protocolViolation(let text): "the peer violates the protocol: \(text)"
        case .tooManyStreams: "too many streams are open"
        case .replaced: "another connection to the peer was kept"
        case .refused: "a limit of connections is reached"
        case .notConnected: "the peer is not connected"
        case .messageTooLarge: "the message is too large"
        case .evicted: "closed in favor of another peer"
        case .tooMuchMemory: "closed since the connections use too much memory"
        }
    }
}
