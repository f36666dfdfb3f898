import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Closes the connections of slow clients and reports activity to the listener's ``ConnectionRegister``. ``ConnectionProgress`` decides.
///
/// Hummingbird's own idle timeout restarts with every part of a request, so that a client that sends slowly is never closed, and has one
/// duration for all steps.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    /// The size of a read, in bytes. NIO keeps four buffers for each connection, 64 KiB each by default, and Hummingbird reads up to ten parts of
    /// a request ahead.
    private static let readByteCount = 4 << 10

    private let limits: HTTPLimits
    private let register: ConnectionRegister
    private var progress: ConnectionProgress?
    private var timer: (task: Scheduled<Void>, deadline: NIODeadline)?

    init(limits: HTTPLimits, register: ConnectionRegister) {
        self.limits = limits
        self.register = register
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let now = context.eventLoop.now
        progress = ConnectionProgress(limits: limits, openedAt: now)
        register.opened(context.channel, at: now)
        try? context.channel.syncOptions?.setOption(
            .recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 512, initial: 2048, maximum: Self.readByteCount))
        setTimer(context)
        // Hummingbird adds handlers behind the one that drops the version of requests only.
        try? RequestHeadHandler.add(to: context.pipeline.syncOperations, register.scheduler(on: context.eventLoop))
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        end(context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        end(context)
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head: update(context) { $0.readHead(at: $1) }
        // An upload in progress is not idle.
        case .body: update(context) { _, _ in }
        case .end: update(context) { progress, _ in progress.readEnd() }
        }
        context.fireChannelRead(data)
    }

    /// Hummingbird closes the connection once no request is outstanding.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent { update(context) { $0.beganStop(at: $1) } }
        context.fireUserInboundEventTriggered(event)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let head) where head.status.kind != .informational:
            update(context) { $0.beganResponse(at: $1) }
        case .head, .body: break
        case .end:
            let promise = promise ?? context.eventLoop.makePromise(of: Void.self)
            promise.futureResult.assumeIsolated().whenComplete { _ in self.update(context) { $0.finishedResponse(at: $1) } }
            return context.write(data, promise: promise)
        }
        context.write(data, promise: promise)
    }

    private func update(_ context: ChannelHandlerContext, _ change: (inout ConnectionProgress, NIODeadline) -> Void) {
        guard var progress else { return }
        let now = context.eventLoop.now
        change(&progress, now)
        self.progress = progress
        register.advanced(context.channel, isBusy: progress.isBusy, at: now)
        setTimer(context)
    }

    /// An earlier timer is kept: when it fires, it is rescheduled for the deadline of that time.
    private func setTimer(_ context: ChannelHandlerContext) {
        guard let deadline = progress?.deadline else { return }
        if let timer {
            guard deadline < timer.deadline else { return }
            timer.task.cancel()
        }
        let task = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { self.timerFired(context) }
        timer = (task, deadline)
    }

    private func timerFired(_ context: ChannelHandlerContext) {
        timer = nil
        guard let deadline = progress?.deadline else { return }
        guard deadline > context.eventLoop.now else { return context.close(promise: nil) }
        setTimer(context)
    }

    private func end(_ context: ChannelHandlerContext) {
        guard progress != nil else { return }
        progress = nil
        timer?.task.cancel()
        timer = nil
        register.closed(context.channel)
    }
}

@available(*, unavailable)
extension ConnectionHandler: Sendable {}
