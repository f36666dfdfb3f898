import Foundation
import Logging
import NIOCore

/// Stops a listener from accepting for a moment when the process or the system has no file descriptor or memory for another connection.
///
/// Without it NIO tries again at once, for as long as a connection waits: its own `AcceptBackoffHandler` holds back the next read, and the one
/// that failed is still pending. So reading is switched off, and reads that others ask for meanwhile are held.
final class AcceptPauseHandler: ChannelDuplexHandler {
    typealias InboundIn = any Channel
    typealias OutboundIn = Never

    static let pause = TimeAmount.milliseconds(250)
    /// A line in the log for so many pauses.
    private static let pausesPerWarning = 240

    private let logger: Logger
    private var isPaused = false
    private var pauseCount = 0

    init(logger: Logger) {
        self.logger = logger
    }

    func read(context: ChannelHandlerContext) {
        // Switched on again, the channel reads by itself.
        if !isPaused { context.read() }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode) else {
            return context.fireErrorCaught(error)
        }
        guard !isPaused else { return }
        isPaused = true
        log(error)
        setReading(false, context)
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
            self.isPaused = false
            self.setReading(true, context)
        }
    }

    private func log(_ error: IOError) {
        let level = pauseCount % Self.pausesPerWarning == 0 ? Logger.Level.warning : .debug
        pauseCount += 1
        logger.log(
            level: level, "HTTP connections not accepted for now",
            metadata: ["reason": "\(String(cString: strerror(error.errnoCode)))", "pauses": "\(pauseCount)"])
    }

    /// Of a channel that is closed by now there is nothing to set.
    private func setReading(_ isOn: Bool, _ context: ChannelHandlerContext) {
        try? context.channel.syncOptions?.setOption(.autoRead, value: isOn)
    }
}

@available(*, unavailable)
extension AcceptPauseHandler: Sendable {}
