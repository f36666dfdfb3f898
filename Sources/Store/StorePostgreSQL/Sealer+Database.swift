import Storage
import WakuCrypto

extension Sealer {
    /// The sealer with the salt that the database stores.
    init(storageKey: SymmetricKey, in connection: PostgreSQLConnection) throws {
        self = try connection.perform(Sealer.stored(under: storageKey))
    }

    /// - Parameter mayWrite: stores the key check in a database that has none yet.
    /// - Throws: `StoreError` when the database is sealed with another key.
    func checkKey(in connection: PostgreSQLConnection, at address: PostgreSQLAddress, mayWrite: Bool) throws {
        if try connection.perform(Properties.property(Self.checkProperty)) == nil, mayWrite {
            // Another process may do so at the same time.
            try connection.perform(.change([Properties.claim(Self.checkProperty, sealCheck())]))
        }
        if let check = try connection.perform(Properties.property(Self.checkProperty)), !opensCheck(check) {
            throw StoreError(otherIdentityAt: address)
        }
    }
}
