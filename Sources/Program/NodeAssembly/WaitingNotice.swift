import Dispatch
import Logging

/// Logs once that an operation takes long, while it blocks its thread.
struct WaitingNotice {
    static let delay = DispatchTimeInterval.seconds(3)

    let message: Logger.Message
    let metadata: Logger.Metadata
    let logger: Logger

    func during<Result>(_ operation: () throws -> Result) rethrows -> Result {
        let notice = DispatchWorkItem { [self] in logger.warning(message, metadata: metadata) }
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.delay, execute: notice)
        defer { notice.cancel() }
        return try operation()
    }
}
