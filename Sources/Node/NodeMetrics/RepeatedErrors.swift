package import Logging
import Core
import Synchronization

/// Logs errors that can come with each message, such as those of a database that is away: each kind at once, and then at most one line a minute with
/// the number of errors since the last line. A line that is logged later than its errors says when the last of them occurred: `last=45 s ago`.
package final class RepeatedErrors: Sendable {
    private let logger: Logger
    private let counts = Mutex(ErrorCounts())

    package init(_ logger: Logger) {
        self.logger = logger
    }

    /// - Parameter message: the kind of error.
    package func log(_ message: String, reason: String, count: Int = 1) {
        switch counts.withLock({ $0.add(count, of: message, reason, at: .now) }) {
        case .log(let line): write(message, line)
        case .logLater(let time):
            Task {
                guard (try? await time.sleep()) != nil else { return }
                if let late = counts.withLock({ $0.take(message, at: .now) }) { write(message, late.line, age: late.age) }
            }
        case .counted: break
        }
    }

    /// The cause of these errors has ended: those that are not logged yet are dropped, and the next one is logged at once.
    package func ended(_ message: String) {
        counts.withLock { $0.ended(message) }
    }

    private func write(_ message: String, _ line: ErrorCounts.Line, age: Duration? = nil) {
        var metadata: Logger.Metadata = ["count": .stringConvertible(line.count), "reason": "\(line.reason)"]
        if let age { metadata["last"] = "\(age.inWords) ago" }
        logger.error("\(message)", metadata: metadata)
    }
}

/// Errors by kind, and when the next line about each may be logged.
struct ErrorCounts {
    struct Line: Hashable {
        let count: Int
        /// Of the last of them.
        let reason: String
    }

    enum Consequence: Hashable {
        case log(Line)
        /// At this time, with ``ErrorCounts/take(_:at:)``.
        case logLater(Instant)
        /// A line is due later anyway.
        case counted
    }

    static let interval = Duration.seconds(60)

    private struct Kind {
        var lastLine: Instant
        var unlogged: Line?
        var lastError: Instant?
    }

    private var kinds: [String: Kind] = [:]

    mutating func add(_ count: Int, of kind: String, _ reason: String, at now: Instant) -> Consequence {
        guard let known = kinds[kind] else {
            kinds[kind] = Kind(lastLine: now)
            return .log(Line(count: count, reason: reason))
        }
        let line = Line(count: (known.unlogged?.count ?? 0) + count, reason: reason)
        if known.unlogged == nil, now - known.lastLine >= Self.interval {
            kinds[kind] = Kind(lastLine: now)
            return .log(line)
        }
        kinds[kind]?.unlogged = line
        kinds[kind]?.lastError = now
        return known.unlogged == nil ? .logLater(known.lastLine + Self.interval) : .counted
    }

    /// - Returns: the errors that were not logged, and the time since the last of them.
    mutating func take(_ kind: String, at now: Instant) -> (line: Line, age: Duration)? {
        guard let known = kinds[kind], let line = known.unlogged else { return nil }
        kinds[kind] = Kind(lastLine: now)
        return (line, now - (known.lastError ?? now))
    }

    mutating func ended(_ kind: String) {
        kinds[kind] = nil
    }
}
