/// A table whose rows are added, and pruned, in order of time.
package struct TimedRows: Sendable {
    private let first: Query
    private let last: Query
    private let remove: Mutation

    /// - Parameters:
    ///   - table: a table whose ids increase with time.
    ///   - time: the column with the time at which a row was added.
    package init(_ table: Table, by time: Column) {
        first = Query(table, [.id], where: [.atLeast(time)], order: [.ascending(.id)])
        last = Query(table, [Query.Output.maximum(.id)])
        remove = Mutation(table, .delete(where: [.less(.id)]))
    }

    /// Deletes the rows before the first one that was added at `cutoff` or later, and the oldest rows beyond `limit`. If the clock was set back, some
    /// rows older than `cutoff` may remain.
    package func prune(before cutoff: Int64, keeping limit: Int) -> StoreCommand<Void> {
        .read([first(.integer(cutoff), limit: 1), last()]) { [remove] found in
            guard let last = try found[1].first?.optionalInteger(0) else { return .change([]) }
            // A damaged row can have any id.
            let (end, isAtEnd) = last.addingReportingOverflow(1)
            let (oldest, isBeforeAll) = end.subtractingReportingOverflow(Int64(limit))
            let kept = try found[0].first?.integer(0) ?? (isAtEnd ? last : end)
            return .change([remove(.integer(isAtEnd || isBeforeAll ? kept : max(kept, oldest)))])
        }
    }
}
