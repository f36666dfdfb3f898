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

    /// A page of rows from an id on, for ``reseal(_:by:from:to:)``.
    package var page: Query {
        Query(table, [column] + boundColumns + [.id], where: [.atLeast(.id), .present(column)], order: [.ascending(.id)])
    }

    package var replacement: Mutation { Mutation(table, .update([column], where: [.equal(.id)])) }

    /// - Parameters:
    ///   - row: a result row of ``page``.
    ///   - replacement: ``replacement``, made once for all rows.
    ///   - old: the sealer that encrypted the row.
    ///   - new: the sealer that encrypts its replacement.
    /// - Throws: `CryptoError`, ``UnexpectedValue``
    package func reseal(_ row: Row, by replacement: Mutation, from old: Sealer, to new: Sealer) throws -> (id: Int64, change: Change) {
        let id = try row.integer(boundColumns.count + 1)
        let content = new.seal(try open(row, by: old), in: table, boundTo: Array(row.values.dropFirst().prefix(boundColumns.count)))
        return (id, replacement(content, .integer(id)))
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
