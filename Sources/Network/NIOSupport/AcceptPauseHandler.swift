import Foundation
package import Logging
package import NIOCore

/// Stops a listener from accepting for a moment when the process or the system has no file descriptor or memory for another connection.
///
/// Without it NIO retries immediately while a connection is pending: its own `AcceptBackoffHandler` delays only the next read, while the
/// failed read is still pending. This handler turns `autoRead` off and holds back reads that others request meanwhile.
///
/// Other errors are passed on: after `ECONNABORTED`, which a client can cause, the next connection can be accepted at once.
package final class AcceptPauseHandler: ChannelDuplexHandler {
    package typealias InboundIn = any Channel
    package typealias OutboundIn = Never

    private let pause: TimeAmount
    private let message: Logger.Message
    private let logger: Logger
    private var isPaused = false
    private var pauseCount: Int64 = 0
    private var warnedAt: NIODeadline?

    /// - Parameter message: Logged at level warning for the first pause and once a minute while pauses continue, otherwise at debug.
    package init(pause: TimeAmount, message: Logger.Message, logger: Logger) {
        self.pause = pause
        self.message = message
        self.logger = logger
    }

    package func read(context: ChannelHandlerContext) {
        // The channel reads by itself once autoRead is on again.
        if !isPaused { context.read() }
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode) else {
            return context.fireErrorCaught(error)
        }
        guard !isPaused else { return }
        isPaused = true
        log(error, at: context.eventLoop.now)
        setReading(false, context)
        context.eventLoop.assumeIsolated().scheduleTask(in: pause) {
            self.isPaused = false
            self.setReading(true, context)
        }
    }

    private func log(_ error: IOError, at now: NIODeadline) {
        let isDue = warnedAt.map { now - $0 >= .minutes(1) } ?? true
        if isDue { warnedAt = now }
        pauseCount += 1
        logger.log(
            level: isDue ? .warning : .debug, message,
            metadata: ["reason": "\(String(cString: strerror(error.errnoCode)))", "pauses": .stringConvertible(pauseCount)])
    }

    /// Does nothing when the channel is closed.
    private func setReading(_ isOn: Bool, _ context: ChannelHandlerContext) {
        try? context.channel.syncOptions?.setOption(.autoRead, value: isOn)
    }
}

@available(*, unavailable)
extension AcceptPauseHandler: Sendable {}
