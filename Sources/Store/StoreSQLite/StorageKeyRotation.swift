import GRDB
package import Storage
package import WakuCrypto

/// Re-encrypts all rows with a new key, while no daemon runs.
///
/// The new key is derived from the identity's storage key with a fresh random salt, which replaces the previous salt in the database.
///
/// - It protects rows written from now on against an attacker who has the old row key (from a memory image, for example), and existing rows against
///   such an attacker who copies the database later. It also resets the count of messages under one AES-GCM key.
/// - It rewrites the whole file: free pages, which may have held ended registrations, are gone.
/// - It does not protect against an attacker who has the identity and the database, since the identity opens everything. Nor does it change earlier
///   copies and backups, or blocks that a file system or an SSD retained.
///
/// Rows of caches (`Storage/Table/isCache`) are deleted instead and recomputed when needed.
/// One transaction changes every row, the salt and the key check: a killed process leaves either all old or all new. Afterwards the file is
/// rewritten, so that no page or log holds contents under the old key. If the process is killed before that ends, the database records it
/// (``StoreInspection/isRotationUnfinished``), and another rotation completes it. Needs free disk space of about twice the database's size.
package enum StorageKeyRotation {
    /// - Parameters:
    ///   - storageKey: the storage key of the identity.
    ///   - folder: locked by the caller.
    ///   - parts: all parts that have tables in the database.
    ///   - move: the other identity to which the database is moved; from then on its storage key opens the database. nil: it stays.
    /// - Throws: `StoreError`; `damaged` when a row can't be opened, `unsuitable` when the store was moved away; then nothing is changed.
    /// - Returns: the number of re-encrypted rows.
    @discardableResult
    package static func run(
        _ storageKey: SymmetricKey, in folder: DataFolder, parts: [StorePart], _ move: StoreMove? = nil
    ) throws(StoreError) -> Int {
        let store = try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: parts)
        do {
            try store.requireNothingAdded()
            try StoreTransfer.requireNoObstacle(in: store)
            let count = try store.pool.writeWithoutTransaction { db in
                // Overwrites replaced contents, including the salt.
                try db.execute(sql: "PRAGMA secure_delete = ON")
                let salt = randomBytes(SymmetricKey.byteCount)
                let new = store.sealer.rotated(under: storageKey, move, salt: salt)
                let session = StoreSession(db: db)
                var count = 0
                try db.inTransaction(.immediate) {
                    for cache in store.schema.parts.tables where cache.isCache {
                        try session.perform(StoreCommand.change([Mutation(cache, .delete(where: []))()]))
                    }
                    for sealed in store.schema.parts.sealedRows {
                        count += try sealed.reseal(from: store.sealer, to: new, reading: session.rows) {
                            try session.perform(StoreCommand.change($0))
                        }
                    }
                    try session.perform(Sealer.rotation(move, salt: salt, to: new))
                    return .commit
                }
                // So that VACUUM overwrites the log instead of making it twice as long.
                try db.checkpoint(.passive)
                try db.execute(sql: "VACUUM")
                try db.checkpoint(.truncate)
                try session.perform(StoreCommand.change([Properties.remove(Sealer.unfinishedRotationProperty)]))
                return count
            }
            try store.close()
            return count
        } catch {
            throw StoreError(explaining: error, in: folder.path)
        }
    }
}
