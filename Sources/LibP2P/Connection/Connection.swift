import NIOCore

/// A secured connection to a peer, over which streams go.
public final class Connection: Sendable {
    public let peer: PeerID
    /// Where the peer's end is; nil for a transport that has no address.
    public let remoteAddress: Multiaddr?
    /// Whether the peer dialled us.
    public let isInbound: Bool
    let openedAt: NIODeadline
    let eventLoop: any EventLoop
    /// Which channel it is made of, to the host's table of those from outside.
    let channelID: ObjectIdentifier
    /// What its peer makes this node hold.
    let memory: MemoryAccount
    /// For the rest of a long message of which a part has come.
    let partTimeout: TimeAmount
    private let handler: NIOLoopBound<ConnectionHandler>
    private let traffic: Traffic

    init(
        peer: PeerID, remoteAddress: Multiaddr?, isInbound: Bool, openedAt: NIODeadline, handler: ConnectionHandler,
        channelID: ObjectIdentifier, eventLoop: any EventLoop, traffic: Traffic, memory: MemoryAccount,
        partTimeout: TimeAmount
    ) {
        self.peer = peer
        self.remoteAddress = remoteAddress
        self.isInbound = isInbound
        self.openedAt = openedAt
        self.handler = NIOLoopBound(handler, eventLoop: eventLoop)
        self.eventLoop = eventLoop
        self.traffic = traffic
        self.channelID = channelID
        self.memory = memory
        self.partTimeout = partTimeout
    }

    /// As on the wire.
    public var bytesReceived: Int { traffic.bytesReceived }
    public var bytesSent: Int { traffic.bytesSent }

    /// A stream that speaks the first of these protocols that the peer does.
    ///
    /// - Throws: ``ConnectionError``, ``MultistreamError``
    func openStream(_ protocolIDs: [String], within limit: TimeAmount) async throws -> PeerStream {
        let promise = eventLoop.makePromise(of: PeerStream.self)
        eventLoop.execute { self.handler.value.openStream(protocolIDs, within: limit, promise) }
        return try await promise.futureResult.get()
    }

    /// Says good-bye, and ends every stream.
    func close(_ reason: ConnectionError) {
        eventLoop.execute { self.handler.value.close(reason) }
    }

    // Called by the streams, from anywhere.

    func hasData(_ stream: UInt32) {
        eventLoop.execute { self.handler.value.hasData(stream) }
    }

    func consumed(_ count: Int, on stream: UInt32) {
        eventLoop.execute { self.handler.value.consumed(count, on: stream) }
    }

    func reset(_ stream: UInt32, _ reason: ConnectionError) {
        eventLoop.execute { self.handler.value.reset(stream, reason) }
    }

    /// The peer makes this node hold so much more, or less. May close the connection, or another one that deserves it less, a little later.
    func charge(_ byteCount: Int) {
        if memory.add(byteCount) { eventLoop.execute { self.handler.value.relieveMemory() } }
    }

    @discardableResult
    func schedule(in delay: TimeAmount, _ task: @escaping @Sendable () -> Void) -> Scheduled<Void> {
        eventLoop.scheduleTask(in: delay, task)
    }
}

/// Why a connection or a stream ended.
public enum ConnectionError: Error, Hashable, Sendable {
    /// The other side ended it.
    case closedByPeer
    /// By us.
    case closed
    /// A step, a stream or an answer took too long.
    case timedOut
    /// It broke a rule of its protocol: which one is in words.
    case protocolViolation(String)
    /// More streams than there may be.
    case tooManyStreams
    /// Another connection to the same peer is kept.
    case replaced
    /// A limit on connections was reached.
    case refused
    /// There is no connection to the peer.
    case notConnected
    /// A message is longer than its reader allows.
    case messageTooLarge
    /// It made way for another peer, and was the least useful one.
    case evicted
    /// Its peer made this node hold too much, while all peers together did.
    case tooMuchMemory
}
