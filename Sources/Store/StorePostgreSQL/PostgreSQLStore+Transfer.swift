package import Storage

extension PostgreSQLStore: TransferableStore {
    package var tables: [Table] { schema.parts.tables }

    package func lastIDs() throws(StoreError) -> [String: Int64] {
        try eachSequence { table, sequence in
            Statement("SELECT coalesce(pg_sequence_last_value(\(sequence)::regclass), 0)", isPrepared: false)
        }
    }

    /// Inserting rows with explicit ids does not advance the sequence.
    package func continueIDs(after last: [String: Int64]) throws(StoreError) {
        let _: [String: Int64] = try eachSequence { table, sequence in
            let highest = "SELECT coalesce(max(id), 0) FROM \(table.quoted)"
            return Statement(
                "SELECT setval(\(sequence)::regclass, greatest(1, \(last[table.name] ?? 0), (\(highest)), "
                    + "pg_sequence_last_value(\(sequence)::regclass)))", isPrepared: false)
        }
    }

    /// Reads a number from each table's sequence.
    private func eachSequence(_ statement: (Table, String) -> Statement) throws(StoreError) -> [String: Int64] {
        let statements = tables.map { table in statement(table, "pg_get_serial_sequence('\(table.quoted)', 'id')") }
        do {
            let results = try queue.runAndWait { writer in try writer.connected().run(statements) }
            return Dictionary(
                uniqueKeysWithValues: try zip(tables, results).map { table, result in
                    guard let row = result.rows.first else { throw UnexpectedValue() }
                    return (table.name, try row.integer(0))
                })
        } catch {
            throw StoreError(explaining: error, at: address)
        }
    }
}
