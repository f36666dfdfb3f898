import NIOCore
import WakuCrypto

/// What a host decides for its connections. Called on their event loops.
protocol ConnectionOwner: AnyObject, Sendable {
    /// - Returns: Why it is not wanted, or nil.
    func opened(_ connection: Connection) -> ConnectionError?
    func closed(_ connection: Connection?, _ reason: any Error)
    func isServed(_ protocolID: String) -> Bool
    /// What serves the protocol to this peer; nil if it has as many streams of it as it may.
    func start(_ stream: PeerStream) -> Task<Void, Never>?
    var traffic: Traffic { get }
    var memory: MemoryBudget { get }
    /// Peers that dialled hold more than they may, all together: closes connections.
    func relieveMemory()
}

/// Carries out what ``ConnectionUpgrade``, ``NoiseTransport`` and ``YamuxSession`` decide, for one channel and on its event loop.
final class ConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    struct Settings: Sendable {
        /// For each step of the upgrade.
        var stepLimit = TimeAmount.seconds(10)
        /// For a peer to agree on a stream's protocol.
        var negotiationLimit = TimeAmount.seconds(10)
        /// After so long without a byte from the peer it is asked for one, and has as long to answer.
        var keepAlive = TimeAmount.seconds(20)
        /// For the rest of a long message of which a part has come.
        var partTimeout = TimeAmount.seconds(60)
        var yamux = YamuxSession.Limits()
        /// Streams that the peer opened and has not agreed on a protocol for.
        var negotiatingStreams = 64
    }

    /// Data that are framed and sealed at once.
    private static let flushLimit = 256 * 1024

    let settings: Settings
    private let role: NoiseHandshake.Role
    private let remoteAddress: Multiaddr?
    private let owner: any ConnectionOwner
    /// Until it is kept: then it holds the connection.
    private var opened: EventLoopPromise<Connection>?
    private let traffic: Traffic
    private let memory: MemoryAccount
    /// What was counted of the data that came: not read, or part of a frame.
    private var countedBytes = 0

    private var context: ChannelHandlerContext?
    private var upgrade: ConnectionUpgrade?
    private var transport: NoiseTransport?
    var session: YamuxSession
    private(set) var connection: Connection?
    /// As it came.
    private var sealed = ByteBuffer()
    /// Without its seal: a part of a frame of yamux at most, between reads.
    private var plain = ByteBuffer()
    private var events: [YamuxSession.Event] = []
    var streams: [UInt32: StreamEntry] = [:]
    var negotiatingCount = 0
    /// Streams with data that may be sent, in the order of their turns.
    private var ready = CircularBuffer<UInt32>()
    /// Streams whose readers are to be woken.
    var touched: [UInt32] = []
    private var stepTimer: Scheduled<Void>?
    private var keepAliveTimer: RepeatedTask?
    private var hasReceived = false
    private var isPinged = false
    private var end: (any Error)?

    init(
        _ role: NoiseHandshake.Role, identity: NoiseIdentity, expecting expected: PeerID?, remoteAddress: Multiaddr?, settings: Settings,
        owner: any ConnectionOwner, opened: EventLoopPromise<Connection>
    ) {
        self.role = role
        self.remoteAddress = remoteAddress
        self.settings = settings
        self.owner = owner
        self.opened = opened
        traffic = Traffic(partOf: owner.traffic)
        memory = MemoryAccount(role == .responder ? owner.memory : nil)
        session = YamuxSession(role, limits: settings.yamux)
        upgrade = ConnectionUpgrade(role, identity: identity, expecting: expected)
    }

    // MARK: The channel

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
        countMemory()
        wakeReaders()
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
        guard let step = upgrade?.step else { return }
        var output = ByteBuffer()
        // What is answered goes out even if the rest fails: it may say why.
        defer { send(output) }
        let upgraded = try upgrade?.receive(&sealed, output: &output)
        if let upgraded { return try open(upgraded, &output) }
        if upgrade?.step != step { startStepTimer() }
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
            handler: self, channelID: ObjectIdentifier(context.channel), eventLoop: context.eventLoop, traffic: traffic, memory: memory,
            partTimeout: settings.partTimeout)
        if let refusal = owner.opened(connection) { throw refusal }
        self.connection = connection
        startKeepAlive(context.eventLoop)
        opened?.succeed(connection)
        opened = nil
    }

    private func startStepTimer() {
        stepTimer?.cancel()
        stepTimer = context?.eventLoop.assumeIsolated().scheduleTask(in: settings.stepLimit) { self.fail(ConnectionError.timedOut) }
    }

    private func startKeepAlive(_ eventLoop: any EventLoop) {
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        keepAliveTimer = eventLoop.scheduleRepeatedTask(initialDelay: settings.keepAlive, delay: settings.keepAlive) { _ in
            bound.value.checkLiveness()
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
        for event in events where end == nil { try handle(event) }
    }

    private func handle(_ event: YamuxSession.Event) throws {
        switch event {
        case .opened(let id): accept(id)
        case .data(let id, let data): receive(data, on: id)
        case .finished(let id): streamFinished(id)
        case .reset(let id): streamEnded(id, ConnectionError.closedByPeer)
        case .windowGrew(let id): markReady(id)
        case .pong: break
        case .goAway(let code): throw YamuxError.goneAway(code: code)
        }
    }

    // MARK: Sending

    func markReady(_ id: UInt32) {
        guard let entry = streams[id], !entry.isReady else { return }
        entry.isReady = true
        ready.append(id)
    }

    /// Frames what may be sent, stream by stream in turns, as long as the socket takes it.
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
        if memory.add(byteCount) { context?.eventLoop.assumeIsolated().execute { self.relieveMemory() } }
    }

    /// Of what came: data that streams have not read, and parts of frames.
    func countMemory() {
        let byteCount = end == nil ? session.bufferedBytes + sealed.readableBytes + plain.readableBytes : 0
        let change = byteCount - countedBytes
        countedBytes = byteCount
        charge(change)
    }

    func relieveMemory() { owner.relieveMemory() }

    func isServed(_ protocolID: String) -> Bool { owner.isServed(protocolID) }

    func startServing(_ stream: PeerStream) -> Task<Void, Never>? { owner.start(stream) }

    private func wakeReaders() {
        for id in touched { streams[id]?.wakeReader() }
        touched.removeAll(keepingCapacity: true)
    }

    // MARK: The end

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

    /// Tells everybody, once.
    private func finish(_ error: any Error) {
        guard end == nil else { return }
        end = error
        stepTimer?.cancel()
        keepAliveTimer?.cancel()
        wakeReaders()
        for id in Array(streams.keys) { streamEnded(id, ConnectionError.closedByPeer) }
        opened?.fail(error)
        owner.closed(connection, error)
        upgrade = nil
        transport = nil
        sealed = ByteBuffer()
        plain = ByteBuffer()
        countMemory()
        // What holds this handler, and would for good.
        (opened, connection, stepTimer, keepAliveTimer) = (nil, nil, nil, nil)
    }
}
