package import Storage

extension PostgreSQLStore {
    /// Removes schema that only older releases need: see `Storage/StorePart/Migration`. Older releases refuse the database from then on. Nodes of
    /// this release that share it may keep running.
    ///
    /// - Parameters:
    ///   - address: the database, which must have this release's tables.
    ///   - parts: all parts that have tables in the database.
    /// - Returns: the migrations that were applied, each by its part's name and its number.
    /// - Throws: `StoreError`; `locked` while a node uses the database exclusively.
    package static func finishMigrations(at address: PostgreSQLAddress, parts: [StorePart]) throws(StoreError) -> [String] {
        let connection = try PostgreSQLConnection.open(address, name: "waku-push migrate")
        do {
            // Held until the connection ends.
            try Writer.lock(connection, at: address, .shared)
            return try connection.withoutTimeLimit { try Schema(parts: parts).finish(connection, at: address) }
        } catch {
            throw StoreError(explaining: error, at: address)
        }
    }
}
