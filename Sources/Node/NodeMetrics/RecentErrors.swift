package import Core
package import Logging
import Synchronization

/// Warnings and errors of the log by their message, for the status page. Records and time are inputs.
package struct ErrorTally {
    package struct Entry: Hashable, Sendable {
        package let message: String
        /// The `reason` of the last record, if it has one.
        package fileprivate(set) var reason: String?
        package fileprivate(set) var last: Timestamp
        /// How often it occurred. A record with the field `count` stands for that many.
        package fileprivate(set) var count: Int
    }

    /// Maximum number of messages. They are constants of the program.
    package static let limit = 20

    /// Latest first.
    package private(set) var entries: [Entry] = []

    package mutating func add(_ message: String, reason: String?, count: Int, at now: Timestamp) {
        var entry = Entry(message: message, reason: reason, last: now, count: max(count, 1))
        if let index = entries.firstIndex(where: { $0.message == message }) { entry.count += entries.remove(at: index).count }
        entries.insert(entry, at: 0)
        if entries.count > Self.limit { entries.removeLast() }
    }
}

/// The ``ErrorTally`` of a node.
package final class RecentErrors: Sendable {
    private let tally = Mutex(ErrorTally())
    private let now: @Sendable () -> Timestamp

    package init(now: @escaping @Sendable () -> Timestamp = Timestamp.now) {
        self.now = now
    }

    /// Latest first.
    package var all: [ErrorTally.Entry] { tally.withLock { $0.entries } }

    /// Writes to `logger`, and counts its warnings and errors.
    package func counting(_ logger: Logger) -> Logger {
        Logger(label: logger.label) { _ in ErrorCountingHandler(base: logger.handler, errors: self) }
    }

    fileprivate func add(_ event: LogEvent) {
        let time = now()
        let reason = event.metadata?["reason"].map { "\($0)" }
        var count = 1
        if case .stringConvertible(let value as Int)? = event.metadata?["count"] { count = value }
        tally.withLock { $0.add(event.message.description, reason: reason, count: count, at: time) }
    }
}

private struct ErrorCountingHandler: LogHandler {
    var base: any LogHandler
    let errors: RecentErrors

    var logLevel: Logger.Level {
        get { base.logLevel }
        set { base.logLevel = newValue }
    }
    var metadata: Logger.Metadata {
        get { base.metadata }
        set { base.metadata = newValue }
    }
    var metadataProvider: Logger.MetadataProvider? {
        get { base.metadataProvider }
        set { base.metadataProvider = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { base[metadataKey: key] }
        set { base[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        if event.level >= .warning { errors.add(event) }
        base.log(event: event)
    }
}
