import Core
import NIOCore

/// A connection of an ``OxenMQLoop``: passes bytes between a channel and the state machines. Used on the loop's thread.
final class OxenMQLink: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    /// How long a closed connection may still send its BYE.
    private static let linger = TimeAmount.milliseconds(200)

    let number: ConnectionNumber
    private unowned let owner: OxenMQLoop
    private var connection: ZMTPConnection
    private var session = OxenMQSession()
    private var liveness: ServerLiveness
    private var channel: (any Channel)?
    private var isPaused = false
    private var isReading = true
    /// Whether the channel has closed. All that it received is delivered first, paused or not, so that the owner can connect again soon.
    private var hasEnded = false
    /// Whether the owner has forgotten the connection: there are no more events.
    private var isClosed = false
    /// The bytes that the owner has counted.
    var countedByteCount = 0

    init(_ number: ConnectionNumber, _ connection: ZMTPConnection, owner: OxenMQLoop) {
        (self.number, self.connection, self.owner) = (number, connection, owner)
        liveness = ServerLiveness(startedAt: .now)
    }

    var heldByteCount: Int { connection.heldByteCount }

    // MARK: The channel

    func handlerAdded(context: ChannelHandlerContext) {
        channel = context.channel
    }

    func channelActive(context: ChannelHandlerContext) {
        flush()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isClosed else { return }
        liveness.heard(at: .now)
        connection.receive(unwrapInboundIn(data))
        deliver()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        flush()
    }

    func channelInactive(context: ChannelHandlerContext) {
        hasEnded = true
        deliver()
    }

    /// The channel closes after an error.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {}

    // MARK: Events

    /// Passes on the received bytes: all after the end, else until the handler pauses the connection.
    private func deliver() {
        do throws(OxenMQClient.Reason) {
            while !isClosed, hasEnded || !isPaused, let event = try connection.next() {
                switch event {
                case .opened: connection.send(OxenMQSession.greeting)
                case .message(let parts): isPaused = try received(parts) == .pause
                }
            }
            guard !isClosed else { return }
            if hasEnded { throw connection.isOpen ? .disconnected : .handshakeFailed }
        } catch {
            return owner.close(number, error)
        }
        if isPaused { connection.shrink() }
        setReading(!isPaused)
        flush()
        if !isClosed { owner.countHeldBytes(of: self) }
    }

    private func received(_ parts: [[UInt8]]) throws(OxenMQClient.Reason) -> OxenMQClient.Flow {
        let event = session.receive(parts)
        if case .closed(let reason) = event { throw reason }
        return owner.handler(number, event)
    }

    func resume() {
        guard isPaused else { return }
        isPaused = false
        deliver()
    }

    private func setReading(_ isOn: Bool) {
        guard isOn != isReading, !hasEnded else { return }
        isReading = isOn
        try? channel?.syncOptions?.setOption(.autoRead, value: isOn)
    }

    func check(at now: Instant) {
        guard !hasEnded else { return }
        switch liveness.check(at: now, isReady: session.isReady, isPaused: isPaused, owner.configuration) {
        case .wait: break
        case .end: owner.close(number, .silent)
        case .ping:
            connection.sendPing()
            flush()
        }
    }

    // MARK: Sending

    /// Dropped before the server's HELLO, and after the end.
    func send(_ parts: [[UInt8]]) {
        guard session.isReady, !hasEnded else { return }
        connection.send(parts)
        flush()
    }

    private func flush() {
        guard let channel, channel.isActive, !isClosed else { return }
        if channel.isWritable {
            if let bytes = connection.takeOutbound() { channel.writeAndFlush(bytes, promise: nil) }
        } else if connection.outboundByteCount > owner.configuration.sendQueueByteCount {
            owner.close(number, .sendQueueFull)
        }
    }

    /// Closes the channel; there are no more events.
    ///
    /// - Returns: done when it is closed.
    @discardableResult func close(sayingBye: Bool) -> EventLoopFuture<Void>? {
        isClosed = true
        guard let channel else { return nil }
        if sayingBye, session.isReady, channel.isActive {
            connection.send(OxenMQSession.farewell)
            // After all that waits to be sent; a server may not accept it.
            channel.writeAndFlush(connection.takeOutbound() ?? ByteBuffer()).whenComplete { _ in channel.close(promise: nil) }
            channel.eventLoop.scheduleTask(in: Self.linger) { channel.close(promise: nil) }
        } else {
            channel.close(promise: nil)
        }
        return channel.closeFuture
    }
}

@available(*, unavailable)
extension OxenMQLink: Sendable {}
