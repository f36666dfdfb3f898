import Logging
import Synchronization

/// Records the field `count` of each warning and error.
final class LoggedCounts: LogHandler, Sendable {
    private let counts = Mutex<[String: [String]]>([:])

    subscript(message: String) -> [String] { counts.withLock { $0[message] ?? [] } }

    var logLevel: Logger.Level {
        get { .warning }
        set {}
    }
    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }

    subscript(metadataKey _: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }

    func log(event: LogEvent) {
        let count = event.metadata?["count"].map { "\($0)" } ?? ""
        counts.withLock { $0[event.message.description, default: []].append(count) }
    }
}
