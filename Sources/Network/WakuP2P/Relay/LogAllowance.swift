import Core

/// Bounds the log lines about an event that others can cause as often as they like. Time comes in as a value.
struct LogAllowance {
    /// The maximum number of lines in a ``period``.
    static let lineCount = 10
    static let period = Duration.seconds(60)

    private var periodStart: Instant?
    private var usedCount = 0
    private var suppressedCount = 0

    /// - Returns: The number of events without a line since the last line; nil if this one is to have none.
    mutating func take(at now: Instant) -> Int? {
        if periodStart.map({ now - $0 >= Self.period }) ?? true { (periodStart, usedCount) = (now, 0) }
        guard usedCount < Self.lineCount else {
            suppressedCount += 1
            return nil
        }
        usedCount += 1
        defer { suppressedCount = 0 }
        return suppressedCount
    }
}
