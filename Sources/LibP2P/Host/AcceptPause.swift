import Logging
import NIOCore

/// Stops a listener for a second when a connection can't be accepted, for want of descriptors or memory.
///
/// The connection that waits keeps the socket readable, so that the event loop would try again at once and for as long as there are none. NIO's own
/// `AcceptBackoffHandler` delays the next read only, while after an error the current one is still pending.
final class AcceptPause: ChannelInboundHandler {
    typealias InboundIn = any Channel

    static let period = TimeAmount.seconds(1)

    private let logger: Logger
    private var isPaused = false

    init(logger: Logger) {
        self.logger = logger
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is IOError else { return context.fireErrorCaught(error) }
        guard !isPaused else { return }
        isPaused = true
        logger.warning("connection not accepted", metadata: ["reason": "\(error)"])
        setAutoRead(false, context)
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.period) {
            self.isPaused = false
            self.setAutoRead(true, context)
        }
    }

    /// Off, it is not waited for connections; on again, for those that wait as well.
    private func setAutoRead(_ isOn: Bool, _ context: ChannelHandlerContext) {
        // A channel that was closed meanwhile has nothing to pause.
        try? context.channel.syncOptions?.setOption(.autoRead, value: isOn)
    }
}
