package import Storage
package import WakuCrypto

/// Seals all rows under a new key, while no daemon uses the database.
///
/// The new key is derived from the identity's storage key with a fresh random salt, which replaces the salt before it in the database: see
/// `StorageKeyRotation` of `StoreSQLite` for what this protects against. One transaction changes every row, the salt and the check of the
/// key. After it, the tables are rewritten, so that none of their pages has what the old key opens; interrupted before the end of that, the
/// database says so, and another rotation mends it. The server's write-ahead log, its archive, standbys' logs and backups are not changed.
///
/// Rows of caches (`Storage/Table/isCache`) are deleted instead: they are computed again when they are needed.
package struct PostgreSQLKeyRotation {
    static let unfinishedProperty = "storage key rotation unfinished"
    private static let page = 500

    private let connection: PostgreSQLConnection
    private let old: Sealer
    private let new: Sealer

    /// - Parameters:
    ///   - storageKey: of the identity.
    ///   - address: of a database that no exclusive store uses.
    ///   - parts: all that have tables in it.
    /// - Throws: `StoreError`; `damaged` when a row can't be opened, and then nothing is changed.
    /// - Returns: how many rows were sealed anew.
    @discardableResult
    package static func run(_ storageKey: SymmetricKey, at address: PostgreSQLAddress, parts: [StorePart]) throws(StoreError) -> Int {
        let store = try PostgreSQLStore(address, storageKey: storageKey, parts: parts, access: .exclusive)
        do {
            try store.requireNothingAdded()
            let count = try store.queue.runAndWait { writer in
                let connection = try writer.connected()
                return try connection.withoutTimeLimit { try rotate(store, on: connection, storageKey) }
            }
            try store.close()
            return count
        } catch {
            throw StoreError(explaining: error, at: address)
        }
    }

    private static func rotate(
        _ store: PostgreSQLStore, on connection: PostgreSQLConnection, _ storageKey: SymmetricKey
    ) throws -> Int {
        let salt = randomBytes(SymmetricKey.byteCount)
        let new = Sealer(storageKey: storageKey, salt: salt)
        let rotation = PostgreSQLKeyRotation(connection: connection, old: store.sealer, new: new)
        let count = try connection.transaction { _ in
            let count = try rotation.sealAll(store.schema)
            try rotation.setKey(salt)
            return count
        }
        for table in store.schema.parts.tables where table.sealed != nil {
            _ = try connection.run(Statement("VACUUM (FULL) \(table.quoted)", isPrepared: false))
        }
        try connection.perform(.change([Properties.remove(unfinishedProperty)]))
        return count
    }

    private func setKey(_ salt: [UInt8]) throws {
        try connection.perform(
            .change([
                Properties.set(Sealer.saltProperty, to: salt), Properties.set(Sealer.checkProperty, to: new.sealCheck()),
                Properties.set(Self.unfinishedProperty, to: [1]),
            ]))
    }

    private func sealAll(_ schema: Schema) throws -> Int {
        for table in schema.parts.tables where table.sealed != nil {
            // Others, such as an import, wait until this is done.
            _ = try connection.run(Statement("LOCK TABLE \(table.quoted) IN SHARE ROW EXCLUSIVE MODE", isPrepared: false))
            if table.isCache { try connection.perform(.change([Mutation(table, .delete(where: []))()])) }
        }
        return try schema.parts.sealedRows.reduce(0) { try $0 + sealAll($1) }
    }

    /// In pages, by the row's id: what is read is not changed at the same time.
    private func sealAll(_ sealed: SealedRows) throws -> Int {
        let (select, replacement) = (sealed.page, sealed.replacement)
        var (next, count) = (Int64.min, 0)
        while true {
            let page = try connection.rows(select(.integer(next), limit: Self.page))
            let changes = try page.map { row in
                let (id, change) = try sealed.reseal(row, by: replacement, from: old, to: new)
                next = id == .max ? id : id + 1
                return change
            }
            try connection.perform(.change(changes))
            count += page.count
            if page.count < Self.page || next == .max { return count }
        }
    }
}
