import Logging
import Synchronization

/// The messages of the log, from level info.
final class RecordedLog: LogHandler, Sendable {
    let messages = Mutex<[String]>([])

    func contains(_ message: String) -> Bool { messages.withLock { $0.contains(message) } }

    var logLevel: Logger.Level {
        get { .info }
        set {}
    }
    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }

    func log(event: LogEvent) { messages.withLock { $0.append(event.message.description) } }
}
