import DequeModule
import Primitives

/// Queries that wait for a read, which answers those that have come until it begins: they come in parts, from several cores and, where nodes share
/// them, to each node a few. See ``Primitives/Pacing``.
struct WaitingQueries<Query> {
    /// So many are answered by a read: what they find is in memory at once.
    static var limit: Int { 32 }

    private var waiting: Deque<Query> = []
    private var pacing = Pacing()

    /// - Parameters:
    ///   - interval: the mean time between two reads under load.
    ///   - now: the time.
    /// - Returns: after which time ``take(at:)`` is to be called; nil when it will be anyway.
    mutating func add(_ queries: [Query], interval: Duration, at now: Instant) -> Duration? {
        if pacing.interval != interval { pacing = Pacing(interval: interval) }
        defer { waiting += queries }
        return waiting.isEmpty ? pacing.delay(at: now) : nil
    }

    /// A read begins.
    ///
    /// - Returns: what it answers, and whether to take more at once.
    mutating func take(at now: Instant) -> (queries: [Query], isMore: Bool) {
        pacing.begin(at: now)
        let taken = Array(waiting.prefix(Self.limit))
        waiting.removeFirst(taken.count)
        return (taken, !waiting.isEmpty)
    }
}
