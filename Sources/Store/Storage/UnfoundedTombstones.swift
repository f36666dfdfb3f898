package import Core

/// Tombstones that a client can make without having registered. They are marked in a column, and kept for 30 days.
package struct UnfoundedTombstones: Sendable {
    private static let lifetime = Duration.seconds(30 * 24 * 3600)
    private let find: Query
    private let remove: Mutation

    /// - Parameters:
    ///   - mark: the column that is 1 in these rows.
    ///   - time: the column with the time at which a row was changed.
    package init(_ table: Table, marked mark: Column, changedAt time: Column) {
        find = Query(table, [.id], where: [.hasValue(mark, 1), .less(time)], order: [.ascending(time)])
        remove = Mutation(table, .delete(where: [.idAmong, .hasValue(mark, 1)]))
    }

    /// Deletes those whose time is over, oldest first.
    ///
    /// - Returns: The number of deleted rows; if it equals `limit`, there may be more.
    package func forget(at now: Timestamp, limit: Int) -> StoreCommand<Int> {
        .find(find(.integer((now - Self.lifetime).rawValue), limit: limit)) { [remove] rows in
            let ids = try rows.map { try $0.integer(0) }
            return .change(ids.isEmpty ? [] : [remove(ids: ids)], ids.count)
        }
    }
}
