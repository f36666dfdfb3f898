import Glibc
import NIOCore

/// The interface of the host to its connections, which call it on their event loops.
protocol ConnectionOwner: AnyObject, Sendable {
    /// - Returns: Why the connection is refused, or nil.
    func opened(_ connection: Connection) -> ConnectionError?
    func closed(_ connection: Connection?, _ reason: any Error)
    func isServed(_ protocolID: String) -> Bool
    /// Starts to serve a stream; nil if the peer has too many streams of its protocol.
    func start(_ stream: PeerStream) -> Task<Void, Never>?
    var traffic: Traffic { get }
    var memory: MemoryBudget { get }
    /// The memory budget of inbound connections is exceeded: closes connections.
    func relieveMemory()
}

/// Drives ``ConnectionUpgrade``, ``NoiseTransport`` and ``YamuxSession`` for one channel, on its event loop.
final class ConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The maximum amount of data that is framed and encrypted at once.
    private static let flushLimit = 256 * 1024

    let configuration: HostConfiguration
    private let role: NoiseHandshake.Role
    private let remoteAddress: Multiaddr?
    let owner: any ConnectionOwner
    /// Fulfilled when the connection is accepted by the host.
    private var opened: EventLoopPromise<Connection>?
    private let traffic: Traffic
    private let memory: MemoryAccount
    /// The received bytes accounted for: unread data and incomplete frames.
    private var countedBytes = 0

    private var context: ChannelHandlerContext?
    private var upgrade: ConnectionUpgrade?
    private var transport: NoiseTransport?
    var session: YamuxSession
    private(set) var connection: Connection?
    /// Received bytes, encrypted.
    private var sealed = ByteBuffer()
    /// Decrypted bytes: between reads, at most an incomplete yamux header.
    private(set) var plain = ByteBuffer()
    private var events: [YamuxSession.Event] = []
    var streams: [UInt32: StreamEntry] = [:]
    var negotiatingCount = 0
    /// Streams that may send data, in round-robin order.
    private var ready = CircularBuffer<UInt32>()
    /// Streams whose readers must be woken.
    var touched: [UInt32] = []
    private var stepTimer: Scheduled<Void>?
    private var keepAliveTimer: RepeatedTask?
    private var streamTimer: RepeatedTask?
    private var hasReceived = false
    private var isPinged = false
    private var end: (any Error)?

    init(
        _ role: NoiseHandshake.Role, identity: NoiseIdentity, expecting expected: PeerID?, remoteAddress: Multiaddr?,
        configuration: HostConfiguration, owner: any ConnectionOwner, opened: EventLoopPromise<Connection>
    ) {
        self.role = role
        self.remoteAddress = remoteAddress
        self.configuration = configuration
        self.owner = owner
        self.opened = opened
        traffic = Traffic(partOf: owner.traffic)
        memory = MemoryAccount(role == .responder ? owner.memory : nil)
        session = YamuxSession(role, limits: configuration.yamuxLimits)
        upgrade = ConnectionUpgrade(role, identity: identity, expecting: expected)
    }

    // MARK: Channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { begin() }
    }

    func channelActive(context: ChannelHandlerContext) {
        begin()
        context.fireChannelActive()
    }

    private func begin() {
        guard let upgrade, stepTimer == nil else { return }
        startStepTimer()
        send(upgrade.opening)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard end == nil else { return }
        var bytes = unwrapInboundIn(data)
        traffic.addReceived(bytes.readableBytes)
        hasReceived = true
        if sealed.readableBytes == 0 {
            sealed = bytes
        } else {
            sealed.discardReadBytes()
            sealed.writeBuffer(&bytes)
        }
        do {
            if upgrade != nil { try receiveUpgrade() }
            if transport != nil { try receiveFrames() }
        } catch {
            fail(error)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        wakeReaders()
        countMemory()
        flush()
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        flush()
        context.fireChannelWritabilityChanged()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(error)
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish(ConnectionError.closedByPeer)
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        finish(ConnectionError.closed)
        self.context = nil
    }

    // MARK: Upgrade

    private func receiveUpgrade() throws {
        guard let stepsDone = upgrade?.stepsDone else { return }
        var output = ByteBuffer()
        // Send the output even if the rest fails: it may tell the peer why.
        defer { send(output) }
        let upgraded = try upgrade?.receive(&sealed, output: &output)
        if let upgraded { return try open(upgraded, &output) }
        if upgrade?.stepsDone != stepsDone { startStepTimer() }
    }

    private func open(_ upgraded: ConnectionUpgrade.Upgraded, _ output: inout ByteBuffer) throws {
        guard let context else { return }
        send(output)
        output = ByteBuffer()
        upgrade = nil
        stepTimer?.cancel()
        transport = upgraded.transport
        plain = upgraded.plain
        let connection = Connection(
            peer: upgraded.peer, remoteAddress: remoteAddress?.with(upgraded.peer), isInbound: role == .responder, openedAt: .now(),
            handler: self, channelID: ObjectIdentifier(context.channel), eventLoop: context.eventLoop,
            closeFuture: context.channel.closeFuture, traffic: traffic, memory: memory,
            partialMessageTimeout: configuration.partialMessageTimeout)
        if let refusal = owner.opened(connection) { throw refusal }
        self.connection = connection
        startTimers(context.eventLoop)
        opened?.succeed(connection)
        opened = nil
    }

    private func startStepTimer() {
        stepTimer?.cancel()
        stepTimer = context?.eventLoop.assumeIsolated().scheduleTask(in: configuration.stepTimeout) { self.fail(ConnectionError.timedOut) }
    }

    private func startTimers(_ eventLoop: any EventLoop) {
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        keepAliveTimer = eventLoop.scheduleRepeatedTask(initialDelay: configuration.keepAlive, delay: configuration.keepAlive) { _ in
            bound.value.checkLiveness()
        }
        streamTimer = eventLoop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in
            bound.value.resetOverdueStreams()
        }
    }

    private func checkLiveness() {
        if hasReceived {
            hasReceived = false
            isPinged = false
        } else if isPinged {
            fail(YamuxError.unanswered)
        } else {
            isPinged = true
            session.ping(1)
            flush()
        }
    }

    // MARK: Frames

    private func receiveFrames() throws {
        guard var opened = try transport?.open(&sealed) else { return }
        if plain.readableBytes == 0 {
            plain = opened
        } else {
            plain.writeBuffer(&opened)
        }
        defer { events.removeAll(keepingCapacity: events.count < 1_024) }
        try session.receive(&plain, &events)
        // Otherwise consumed bytes would stay in the buffer for as long as each read ends within a header.
        plain.shrink()
        for event in events where end == nil { try handle(event) }
    }

    private func handle(_ event: YamuxSession.Event) throws {
        switch event {
        case .opened(let id): accept(id)
        case .data(let id, let data): receive(data, on: id)
        case .finished(let id): streamFinished(id)
        case .reset(let id): streamEnded(id, ConnectionError.closedByPeer)
        case .windowGrew(let id): markReady(id)
        case .goAway(let code): throw YamuxError.goneAway(code: code)
        }
    }

    // MARK: Sending

    func markReady(_ id: UInt32) {
        guard let entry = streams[id], !entry.isReady else { return }
        entry.isReady = true
        ready.append(id)
    }

    /// Sends data of the streams in turns while the socket is writable.
    func flush() {
        while let context, transport != nil, context.channel.isWritable {
            while session.output.readableBytes < Self.flushLimit, let id = ready.popFirst() {
                guard let entry = streams[id] else { continue }
                entry.isReady = false
                if frameData(of: entry, id) { markReady(id) }
            }
            guard session.output.readableBytes > 0, let sealed = transport?.seal(&session.output) else { return }
            if session.output.capacity > Self.flushLimit { session.output = ByteBuffer() } else { session.output.clear() }
            send(sealed)
        }
    }

    /// Whether bytes wait in a stream, in the channel, or in the socket for the peer's acknowledgement.
    func isSending(on eventLoop: any EventLoop) -> EventLoopFuture<Bool> {
        guard let channel = context?.channel, end == nil else { return eventLoop.makeSucceededFuture(false) }
        let buffered = (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
        let isQueued = streams.values.contains { $0.queuedByteCount > 0 } || session.output.readableBytes + buffered > 0
        guard !isQueued, let socket = channel as? any SocketOptionProvider else { return eventLoop.makeSucceededFuture(isQueued) }
        return socket.getTCPInfo().map { $0.tcpi_unacked > 0 }
    }

    private func send(_ bytes: ByteBuffer) {
        guard let context, bytes.readableBytes > 0 else { return }
        let byteCount = bytes.readableBytes
        traffic.addSent(byteCount)
        guard role == .responder else { return context.writeAndFlush(wrapOutboundOut(bytes), promise: nil) }
        charge(byteCount)
        context.writeAndFlush(wrapOutboundOut(bytes)).assumeIsolated().whenComplete { _ in self.charge(-byteCount) }
    }

    // MARK: Memory

    private func charge(_ byteCount: Int) {
        if memory.add(byteCount) { context?.eventLoop.assumeIsolated().execute { self.owner.relieveMemory() } }
    }

    /// Updates the accounting of received data: unread data of streams, and incomplete frames.
    func countMemory() {
        let byteCount = end == nil ? session.bufferedBytes + sealed.readableBytes + plain.readableBytes : 0
        let change = byteCount - countedBytes
        countedBytes = byteCount
        charge(change)
    }

    private func wakeReaders() {
        for id in touched { streams[id]?.wakeReader() }
        touched.removeAll(keepingCapacity: true)
    }

    // MARK: Closing

    func close(_ reason: ConnectionError) {
        guard end == nil else { return }
        session.goAway(.normal)
        flush()
        finish(reason)
        context?.close(promise: nil)
    }

    func fail(_ error: any Error) {
        guard end == nil else { return }
        if transport != nil, !(error is NoiseError) {
            session.goAway(error is YamuxError ? .protocolError : .normal)
            flush()
        }
        finish(error)
        context?.close(promise: nil)
    }

    /// Ends all streams and notifies the host, once.
    private func finish(_ error: any Error) {
        guard end == nil else { return }
        end = error
        stepTimer?.cancel()
        keepAliveTimer?.cancel()
        streamTimer?.cancel()
        wakeReaders()
        for id in Array(streams.keys) { streamEnded(id, ConnectionError.closedByPeer) }
        opened?.fail(error)
        owner.closed(connection, error)
        upgrade = nil
        transport = nil
        sealed = ByteBuffer()
        plain = ByteBuffer()
        countMemory()
        // Break retain cycles.
        (opened, connection, stepTimer, keepAliveTimer, streamTimer) = (nil, nil, nil, nil, nil)
    }
}
