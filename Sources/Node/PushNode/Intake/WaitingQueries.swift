import DequeModule
import Core

/// Queries that wait for a read. With several nodes under load, a read answers what has come in a while: each node gets a few of the queries that
/// come at once (``Primitives/Pacing``).
///
///     add ──(delay)──▶ begin: what has come until now ──(all that was submitted before is durable)──▶ take, take … ──(more has come)──▶ begin
struct WaitingQueries<Query> {
    /// So many are answered by a read: what they find is in memory at once.
    static var limit: Int { 32 }

    private var waiting: Deque<Query> = []
    private var takenCount = 0
    private var pacing = Pacing()

    /// - Parameters:
    ///   - interval: the mean time between two turns under load.
    ///   - now: the time.
    /// - Returns: after which time ``begin(at:)`` is to be called; nil when it will be anyway.
    mutating func add(_ queries: [Query], interval: Duration, at now: Instant) -> Duration? {
        if pacing.interval != interval { pacing = Pacing(interval: interval) }
        defer { waiting += queries }
        return waiting.isEmpty ? pacing.delay(at: now) : nil
    }

    /// Begins a turn: what was submitted before is waited for next.
    ///
    /// - Returns: for ``take(upTo:at:)``. What comes later may have to wait for what is submitted later.
    mutating func begin(at now: Instant) -> Int {
        pacing.begin(at: now)
        return takenCount + waiting.count
    }

    struct Taken {
        let queries: [Query]
        /// To be called again for the same turn, at once.
        let isMore: Bool
        /// After which time the next turn is to begin; nil when ``WaitingQueries/add(_:interval:at:)`` tells.
        let next: Duration?
    }

    /// What a read of this turn answers.
    mutating func take(upTo end: Int, at now: Instant) -> Taken {
        let count = max(0, min(Self.limit, end - takenCount))
        let taken = Array(waiting.prefix(count))
        waiting.removeFirst(taken.count)
        takenCount += taken.count
        let isLast = !taken.isEmpty && takenCount == end
        return Taken(queries: taken, isMore: takenCount < end, next: isLast && !waiting.isEmpty ? pacing.delay(at: now) : nil)
    }
}
