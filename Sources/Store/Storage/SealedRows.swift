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
    /// A page ends with the row that reaches this size: it is in memory in several copies until it is written.
    private static let pageByteCount = 8 << 20

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
        let sizes = Query(
            table, [.column(.id), .byteCount(column)], where: [.atLeast(.id), .present(column)], order: [.ascending(.id)])
        let page = Query(table, [column] + boundColumns + [.id], where: [.idAmong])
        let replacement = Mutation(table, .update([column], where: [.equal(.id)]))
        var (next, count) = (Int64.min, 0)
        while true {
            var (ids, byteCount): ([Int64], Int64) = ([], 0)
            for row in try read(sizes(.integer(next), limit: Self.pageSize)) where byteCount < Self.pageByteCount {
                ids.append(try row.integer(0))
                byteCount += try row.integer(1)
            }
            guard let last = ids.last else { return count }
            let changes = try read(page(ids: ids)).map { row in
                let bound = Array(row.values.dropFirst().prefix(boundColumns.count))
                let sealed = new.seal(try open(row, by: old), in: table, boundTo: bound)
                return replacement(sealed, .integer(try row.integer(boundColumns.count + 1)))
            }
            try change(changes)
            count += changes.count
            guard last < .max else { return count }
            next = last + 1
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
