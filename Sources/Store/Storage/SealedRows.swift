/// The sealed rows of a table whose encrypted column is bound to other columns of the row, so that the key alone decrypts them.
package struct SealedRows: Sendable {
    package let table: Table
    package let column: Column
    /// In the order of ``SealedColumn/binding``.
    package let boundColumns: [Column]
    package let label: String

    /// nil if the table has no encrypted column or is a cache.
    package init?(_ table: Table) {
        guard let sealed = table.sealed, let boundColumns = sealed.boundColumns else { return nil }
        (self.table, column, self.boundColumns, label) = (table, sealed.column, boundColumns, sealed.label)
    }

    /// Reads the sealed content, then the columns that it is bound to, then `others`. Rows without content are left out.
    package func contents(and others: [Column] = []) -> Query {
        Query(table, [column] + boundColumns + others, where: [.present(column)])
    }

    /// - Parameters:
    ///   - row: a result row of ``contents(and:)``.
    ///   - sealer: the sealer of the store that holds the row.
    /// - Throws: `CryptoError`, ``UnexpectedValue``
    package func open(_ row: Row, by sealer: Sealer) throws -> [UInt8] {
        try sealer.open(try row.bytes(0), in: table, boundTo: Array(row.values.dropFirst().prefix(boundColumns.count)))
    }

    // MARK: Re-encrypting

    private static let pageSize = 500

    /// Encrypts all rows with another key, in pages ordered by id, so that rows are not read while they are changed.
    ///
    /// - Parameters:
    ///   - old: the sealer that encrypted the rows.
    ///   - new: the sealer that encrypts their replacements.
    ///   - read: reads within the transaction.
    ///   - change: applies changes within the transaction.
    /// - Throws: `CryptoError`, ``UnexpectedValue``, and errors of `read` and `change`.
    /// - Returns: the number of rows.
    package func reseal(
        from old: Sealer, to new: Sealer, reading read: (Read) throws -> [Row], changing change: ([Change]) throws -> Void
    ) throws -> Int {
        let page = Query(table, [column] + boundColumns + [.id], where: [.atLeast(.id), .present(column)], order: [.ascending(.id)])
        let replacement = Mutation(table, .update([column], where: [.equal(.id)]))
        var (next, count) = (Int64.min, 0)
        while true {
            let rows = try read(page(.integer(next), limit: Self.pageSize))
            try change(
                rows.map { row in
                    let id = try row.integer(boundColumns.count + 1)
                    next = id == .max ? id : id + 1
                    let bound = Array(row.values.dropFirst().prefix(boundColumns.count))
                    return replacement(new.seal(try open(row, by: old), in: table, boundTo: bound), .integer(id))
                })
            count += rows.count
            if rows.count < Self.pageSize || next == .max { return count }
        }
    }
}

extension [StorePart] {
    package var tables: [Table] { flatMap(\.tables) }

    package var sealedRows: [SealedRows] { tables.compactMap(SealedRows.init) }
}

extension Table {
    /// Whether the table is a cache: see ``SealedColumn/init(cached:boundTo:label:)``.
    package var isCache: Bool { sealed.map { $0.boundColumns == nil } ?? false }
}
