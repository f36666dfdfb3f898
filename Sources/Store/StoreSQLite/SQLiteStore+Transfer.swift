import GRDB
package import Storage

extension SQLiteStore: TransferableStore {
    package var tables: [Storage.Table] { schema.parts.tables }

    package func requireNothingAdded() throws(StoreError) {
        do {
            // Opening it has refused additions of a later version.
            try schema.parts.requireAll(of: pool.read(schema.applied), in: "the database \(path)")
        } catch {
            throw StoreError(explaining: error, in: path)
        }
    }

    /// SQLite stores the highest assigned ids in the table `sqlite_sequence`, in which nothing keeps a damaged row from having other types, or a name that is
    /// there twice.
    package func lastIDs() throws(StoreError) -> [String: Int64] {
        do {
            return try pool.read { db in
                let rows = try GRDB.Row.fetchAll(db, sql: "SELECT name, seq FROM sqlite_sequence")
                let ids = try rows.map { row in
                    guard let name = String.fromDatabaseValue(row["name"]), let id = Int64.fromDatabaseValue(row["seq"]) else {
                        throw UnexpectedValue()
                    }
                    return (name, id)
                }
                return Dictionary(ids, uniquingKeysWith: max)
            }
        } catch {
            throw StoreError(explaining: error, in: path)
        }
    }

    package func continueIDs(after last: [String: Int64]) throws(StoreError) {
        do {
            try pool.write { db in
                for table in tables where table.neverReusesIDs {
                    guard let id = last[table.name] else { continue }
                    try db.execute(sql: "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", arguments: [id, table.name])
                    guard db.changesCount == 0 else { continue }
                    try db.execute(sql: "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", arguments: [table.name, id])
                }
            }
        } catch {
            throw StoreError(explaining: error, in: path)
        }
    }
}
