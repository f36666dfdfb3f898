package import Core

/// A table whose rows are added, and pruned, in order of time: see ``Store/prune(_:before:at:keeping:since:)``.
package struct TimedRows: Sendable {
    /// A row whose time is this far in the future was added while a clock was ahead.
    private static let farAhead = Duration.seconds(24 * 3600)
    /// The maximum number of rows that a call prunes. After a pause of a day there may be many millions.
    static let pruneLimit = 1_000_000

    private let oldest: Query
    private let last: Query
    private let find: Query
    private let remove: Mutation

    /// - Parameters:
    ///   - table: a table whose ids increase with time.
    ///   - time: the column with the time at which a row was added, in nanoseconds.
    package init(_ table: Table, by time: Column) {
        oldest = Query(table, [.id, time], order: [.ascending(.id)])
        last = Query(table, [Query.Output.maximum(.id)])
        find = Query(table, [.id], where: [.between(.id)], order: [.ascending(.id)])
        remove = Mutation(table, .delete(where: [.between(.id)]))
    }

    /// The id of the last row to delete; nil if all are to be kept.
    fileprivate func end(
        in store: any Store, before cutoff: Timestamp, at now: Timestamp, keeping limit: Int, since fresh: Timestamp
    ) throws(StoreError) -> Int64? {
        guard let last = try store.read(.find(last()) { .done(try $0.first?.optionalInteger(0)) }) else { return nil }
        // A damaged row can have any id, and any value as its time.
        let (beyond, overflows) = last.subtractingReportingOverflow(Int64(limit))
        let isLimited = !overflows && last < .max
        var end: Int64?
        try store.scan(oldest(limit: Self.pruneLimit)) { row in
            let (id, time) = (try row.integer(0), Timestamp(rawValue: (try? row.integer(1)) ?? .max))
            // A row that is ahead is not known to be fresh, and must not keep those after it.
            let isBeyond = isLimited && id <= beyond && (time < fresh || time > now)
            guard time < cutoff || isBeyond else { return time > now + Self.farAhead }
            end = id
            return true
        }
        return end
    }

    /// Deletes the first rows from `start` to `end`.
    ///
    /// - Returns: the id from which to continue; nil when none is left.
    fileprivate func removal(from start: Int64, through end: Int64, limit: Int) -> StoreCommand<Int64?> {
        .find(find(.integer(start), .integer(end), limit: limit)) { [remove] rows in
            guard let last = try rows.last?.integer(0) else { return .done(nil) }
            return .change([remove(.integer(start), .integer(last))], last < end ? last + 1 : nil)
        }
    }
}

extension Store {
    /// Deletes the rows before the first one that was added at `cutoff` or later, and the oldest rows beyond `limit` that were added before `fresh`,
    /// in chunks as ``commitInChunks(atMost:_:)`` does. One call deletes at most a million: call it again after a while.
    ///
    /// If the clock was set back, some rows older than `cutoff` may remain. Rows that were added while it was ahead stay until rows after them are
    /// deleted, or until they are beyond `limit`.
    package func prune(
        _ rows: TimedRows, before cutoff: Timestamp, at now: Timestamp, keeping limit: Int,
        since fresh: Timestamp = Timestamp(rawValue: .max)
    ) async throws(StoreError) {
        if Task.isCancelled { return }
        let found = try await onReader { store throws(StoreError) in
            try rows.end(in: store, before: cutoff, at: now, keeping: limit, since: fresh)
        }
        guard let end = found else { return }
        // Continues after the last chunk: PostgreSQL would read all deleted rows again.
        var start: Int64? = .min
        while let first = start, !Task.isCancelled {
            start = try await commit(rows.removal(from: first, through: end, limit: Self.chunkLimit))
        }
    }
}
