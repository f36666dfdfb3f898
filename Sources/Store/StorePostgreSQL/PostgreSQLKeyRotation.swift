package import Storage
package import WakuCrypto

/// Re-encrypts all rows with a new key, while no daemon uses the database.
///
/// The new key is derived from the identity's storage key with a fresh random salt, which replaces the previous salt in the database: see
/// `StorageKeyRotation` of `StoreSQLite` for the protection this gives. One transaction changes every row, the salt and the key check. Afterwards the
/// tables are rewritten, so that no page holds contents under the old key; if that is interrupted, the database records it, and another rotation
/// completes it. The server's write-ahead log, its archive, standbys' logs and backups are not changed.
///
/// Rows of caches (`Storage/Table/isCache`) are deleted instead and recomputed when needed.
package enum PostgreSQLKeyRotation {
    /// - Parameters:
    ///   - storageKey: the storage key of the identity.
    ///   - address: a database that no exclusive store uses.
    ///   - parts: all parts that have tables in the database.
    ///   - move: the other identity to which the database is moved; from then on its storage key opens the database. nil: it stays.
    /// - Throws: `StoreError`; `damaged` when a row can't be opened, `unsuitable` when the store was moved away; then nothing is changed.
    /// - Returns: the number of re-encrypted rows.
    @discardableResult
    package static func run(
        _ storageKey: SymmetricKey, at address: PostgreSQLAddress, parts: [StorePart], _ move: StoreMove? = nil
    ) throws(StoreError) -> Int {
        let store = try PostgreSQLStore(address, storageKey: storageKey, parts: parts, access: .exclusive)
        do {
            try store.requireNothingAdded()
            try StoreTransfer.requireNoObstacle(in: store)
            let count = try store.queue.runAndWait { writer in
                let connection = try writer.connected()
                return try connection.withoutTimeLimit { try rotate(store, on: connection, storageKey, move) }
            }
            try store.close()
            return count
        } catch {
            throw StoreError(explaining: error, at: address)
        }
    }

    private static func rotate(
        _ store: PostgreSQLStore, on connection: PostgreSQLConnection, _ storageKey: SymmetricKey, _ move: StoreMove?
    ) throws -> Int {
        let salt = randomBytes(SymmetricKey.byteCount)
        let new = store.sealer.rotated(under: storageKey, move, salt: salt)
        let tables = store.schema.parts.tables.filter { $0.sealed != nil }
        let count = try connection.transaction { _ in
            for table in tables {
                // Other writers, such as an import, wait until this is done.
                _ = try connection.run(Statement("LOCK TABLE \(table.quoted) IN SHARE ROW EXCLUSIVE MODE", isPrepared: false))
                if table.isCache { try connection.perform(.change([Mutation(table, .delete(where: []))()])) }
            }
            let count = try store.schema.parts.sealedRows.reduce(0) { count, sealed in
                try count + sealed.reseal(from: store.sealer, to: new, reading: connection.rows) { try connection.perform(.change($0)) }
            }
            try connection.perform(Sealer.rotation(move, salt: salt, to: new))
            return count
        }
        for table in tables { _ = try connection.run(Statement("VACUUM (FULL) \(table.quoted)", isPrepared: false)) }
        try connection.perform(.change([Properties.remove(Sealer.unfinishedRotationProperty)]))
        return count
    }
}
