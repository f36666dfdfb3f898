package import Logging
import Core
import Synchronization

/// Logs errors that can come with each message, such as those of a database that is away: each kind at once, and then at most one line a minute with
/// the number of errors since the last line.
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
                if let line = counts.withLock({ $0.take(message, at: .now) }) { write(message, line) }
            }
        case .counted: break
        }
    }

    private func write(_ message: String, _ line: ErrorCounts.Line) {
        logger.error("\(message)", metadata: ["count": .stringConvertible(line.count), "reason": "\(line.reason)"])
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
        return known.unlogged == nil ? .logLater(known.lastLine + Self.interval) : .counted
    }

    mutating func take(_ kind: String, at now: Instant) -> Line? {
        guard let line = kinds[kind]?.unlogged else { return nil }
        kinds[kind] = Kind(lastLine: now)
        return line
    }
}
