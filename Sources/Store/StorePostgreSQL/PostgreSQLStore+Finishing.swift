package import Storage

extension PostgreSQLStore {
    /// Removes what only older releases need: see `Storage/StorePart/Migration`. They refuse the database from then on; nodes of this release may
    /// run that share it.
    ///
    /// - Parameters:
    ///   - address: of the database, which must have this release's tables.
    ///   - parts: all that have tables in it.
    /// - Returns: the migrations that were applied, each by its part's name and its number.
    /// - Throws: `StoreError`; `locked` while a node has the database for itself.
    package static func finishMigrations(at address: PostgreSQLAddress, parts: [StorePart]) throws(StoreError) -> [String] {
        let connection = try PostgreSQLConnection.open(address, name: "waku-push migrate")
        do {
            // Until the connection ends.
            try Writer.lock(connection, at: address, .shared)
            return try connection.withoutTimeLimit { try Schema(parts: parts).finish(connection, at: address) }
        } catch {
            throw StoreError(explaining: error, at: address)
        }
    }
}
