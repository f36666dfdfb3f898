/// A table whose rows are deleted after a time in one of its columns.
package struct ExpiredRows: Sendable {
    private let find: Query
    private let removal: Mutation

    /// - Parameters:
    ///   - time: an indexed column.
    package init(_ table: Table, by time: Column) {
        find = Query(table, [.id], where: [.less(time)], order: [.ascending(time)])
        // Another node may have renewed a row meanwhile.
        removal = Mutation(table, .delete(where: [.idAmong, .less(time)]))
    }

    /// Deletes the rows of before `time`, oldest first: for ``Store/commitInChunks(atMost:_:)``.
    ///
    /// - Returns: the number of rows found; if it equals `limit`, there may be more.
    package func remove(before time: Int64, limit: Int) -> StoreCommand<Int> {
        .find(find(.integer(time), limit: limit)) { [removal] rows in
            let ids = try rows.map { try $0.integer(0) }
            return .change(ids.isEmpty ? [] : [removal(.integer(time), ids: ids)], ids.count)
        }
    }
}
