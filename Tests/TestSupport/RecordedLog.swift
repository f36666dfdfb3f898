package import Logging
import Synchronization

/// Records the entries of a log, of all levels.
package final class RecordedLog: LogHandler, Sendable {
    private let entries = Mutex<[LogEvent]>([])

    package init() {}

    package var logger: Logger { Logger(label: "test") { _ in self } }

    package var all: [LogEvent] { entries.withLock(\.self) }
    package var messages: [String] { all.map(\.message.description) }
    /// Level, message and metadata of each entry.
    package var lines: [String] {
        all.map { entry in
            (["\(entry.level)", "\(entry.message)"] + (entry.metadata ?? [:]).map { "\($0)=\($1)" }.sorted()).joined(separator: " ")
        }
    }

    /// Whether a line contains the text.
    package func contains(_ text: String) -> Bool { lines.contains { $0.contains(text) } }

    package var logLevel: Logger.Level {
        get { .trace }
        set {}
    }
    package var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }

    package subscript(metadataKey _: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }

    package func log(event: LogEvent) { entries.withLock { $0.append(event) } }
}
