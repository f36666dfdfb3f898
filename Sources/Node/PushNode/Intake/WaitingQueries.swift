import DequeModule
import Core

/// Queries that wait for a read. With several nodes under load, each node gets only a few queries at a time, so it collects queries for a while
/// (`Core/Pacing`) and answers them together.
///
///     add ──(delay)──▶ begin: all waiting queries ──(all earlier changes are durable)──▶ take, take … ──(more queries)──▶ begin
struct WaitingQueries<Query> {
    /// The maximum number of queries that a read answers. Limits memory, since the results of all of them are in memory at the same time.
    static var limit: Int { 32 }

    private var waiting: Deque<Query> = []
    private var takenCount = 0
    private var pacing = Pacing()

    /// - Parameter interval: the mean time between two turns under load.
    /// - Returns: the delay after which to call ``begin(at:)``; nil if a call is already due.
    mutating func add(_ queries: [Query], interval: Duration, at now: Instant) -> Duration? {
        if pacing.interval != interval { pacing = Pacing(interval: interval) }
        defer { waiting += queries }
        return waiting.isEmpty ? pacing.delay(at: now) : nil
    }

    /// Begins a turn with all waiting queries. The caller then waits until all changes submitted before are durable, or for a while.
    ///
    /// - Returns: the end of the turn, for ``take(upTo:at:)``. Later queries may depend on later changes, so they belong to the next turn.
    mutating func begin(at now: Instant) -> Int {
        pacing.begin(at: now)
        return takenCount + waiting.count
    }

    struct Taken {
        let queries: [Query]
        /// Whether to call ``WaitingQueries/take(upTo:at:)`` again at once for the same turn.
        let isMore: Bool
        /// The delay after which to begin the next turn; nil if ``WaitingQueries/add(_:interval:at:)`` returns it.
        let next: Duration?
    }

    /// Whether all queries of a turn were taken.
    func isTaken(upTo end: Int) -> Bool { takenCount >= end }

    /// Takes the queries that the next read of this turn answers.
    mutating func take(upTo end: Int, at now: Instant) -> Taken {
        let count = max(0, min(Self.limit, end - takenCount))
        let taken = Array(waiting.prefix(count))
        waiting.removeFirst(taken.count)
        takenCount += taken.count
        let isLast = !taken.isEmpty && takenCount == end
        return Taken(queries: taken, isMore: takenCount < end, next: isLast && !waiting.isEmpty ? pacing.delay(at: now) : nil)
    }
}
