import GRDB
package import Storage
package import WakuCrypto

/// Seals all rows under a new key, while no daemon runs.
///
/// The new key is derived from the identity's storage key with a fresh random salt, which replaces the salt before it in the database.
///
/// - It protects what is written from now on against whoever got hold of the rows' old key (from a memory image, say), and what is in the
///   database against whoever has that key and takes a copy from now on. It starts the count of messages under one AES-GCM key anew.
/// - It also rewrites the whole file: pages that were free and may have held ended registrations are gone.
/// - It does not protect against whoever has the identity itself and the database: the identity opens everything. Nor does it change copies
///   and backups made before, or blocks that a file system or an SSD kept.
///
/// Rows of caches (`Storage/Table/isCache`) are deleted instead: they are computed again when they are needed.
///
/// One transaction changes every row, the salt and the check of the key: a process that is killed leaves either all old or all new. After
/// it, the file is rewritten, so that no page and no log has what the old key opens; killed before the end of that, the database says so
/// (``StoreInspection/isRotationUnfinished``), and another rotation mends it. Needs free disk of some twice the database's size meanwhile.
package struct StorageKeyRotation {
    private static let unfinishedProperty = "storage key rotation unfinished"
    private static let page = 500

    private let db: Database
    private let old: Sealer
    private let new: Sealer

    /// - Parameters:
    ///   - storageKey: of the identity.
    ///   - folder: locked by the caller.
    ///   - parts: all that have tables in it.
    /// - Throws: `StoreError`; `damaged` when a row can't be opened, and then nothing is changed.
    /// - Returns: how many rows were sealed anew.
    @discardableResult
    package static func run(_ storageKey: SymmetricKey, in folder: DataFolder, parts: [StorePart]) throws(StoreError) -> Int {
        let store = try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: parts)
        do {
            let count = try store.pool.writeWithoutTransaction { db in
                // What is replaced is overwritten, the salt too.
                try db.execute(sql: "PRAGMA secure_delete = ON")
                let salt = randomBytes(SymmetricKey.byteCount)
                let rotation = StorageKeyRotation(db: db, old: store.sealer, new: Sealer(storageKey: storageKey, salt: salt))
                var count = 0
                try db.inTransaction(.immediate) {
                    count = try rotation.sealAll(store.schema)
                    try rotation.setKey(salt)
                    return .commit
                }
                try db.execute(sql: "VACUUM")
                try db.checkpoint(.truncate)
                try StoreSession(db: db).perform(StoreCommand.change([Properties.remove(unfinishedProperty)]))
                return count
            }
            try store.close()
            return count
        } catch {
            throw StoreError(explaining: error, in: folder.path)
        }
    }

    static func isUnfinished(in db: Database) throws -> Bool {
        try StoreSession(db: db).perform(Properties.property(unfinishedProperty)) != nil
    }

    private func setKey(_ salt: [UInt8]) throws {
        try StoreSession(db: db).perform(
            StoreCommand.change([
                Properties.set(Sealer.saltProperty, to: salt), Properties.set(Sealer.checkProperty, to: new.sealCheck()),
                Properties.set(Self.unfinishedProperty, to: [1]),
            ]))
    }

    private func sealAll(_ schema: Schema) throws -> Int {
        for cache in schema.parts.tables where cache.isCache {
            try StoreSession(db: db).perform(StoreCommand.change([Mutation(cache, .delete(where: []))()]))
        }
        return try schema.parts.sealedRows.reduce(0) { try $0 + sealAll($1) }
    }

    /// In pages, by the row's id: what is read is not changed at the same time.
    private func sealAll(_ sealed: SealedRows) throws -> Int {
        let (select, replacement, session) = (sealed.page, sealed.replacement, StoreSession(db: db))
        var (next, count) = (Int64.min, 0)
        while true {
            let page = try session.rows(select(.integer(next), limit: Self.page))
            for row in page {
                let (id, change) = try sealed.reseal(row, by: replacement, from: old, to: new)
                try session.perform(StoreCommand.change([change]))
                next = id == .max ? id : id + 1
            }
            count += page.count
            if page.count < Self.page || next == .max { return count }
        }
    }
}
