package import Storage
package import StorePostgreSQL
import StoreSQLite
package import WakuCrypto

/// The location of a node's registrations and notifications.
package enum StoreLocation: Hashable, Sendable {
    /// In an SQLite database in the data folder.
    case dataFolder
    case postgreSQL(PostgreSQLAddress)

    /// Opens the store of a daemon, or of a command that takes its place, and creates its tables if necessary.
    ///
    /// - Parameters:
    ///   - folder: the data folder, locked by the caller. A PostgreSQL database is locked too, for as long as the store is open.
    ///   - storageKey: see `Sealer.storageKey(of:)`.
    ///   - parts: all that have tables in it.
    ///   - isShared: whether other nodes may use it too: a PostgreSQL database.
    package func open(
        in folder: String, storageKey: SymmetricKey, parts: [StorePart], isShared: Bool = false
    ) throws(StoreError) -> any Store {
        let store = try openForTransfer(in: folder, storageKey: storageKey, parts: parts, isShared: isShared)
        try StoreTransfer.requireNoObstacle(in: store)
        return store
    }

    /// Like ``open(in:storageKey:parts:)``, but also opens a store that was moved away, or is incomplete.
    package func openForTransfer(
        in folder: String, storageKey: SymmetricKey, parts: [StorePart], isShared: Bool = false
    ) throws(StoreError) -> any TransferableStore {
        switch self {
        case .dataFolder: try SQLiteStore(folder: folder, storageKey: storageKey, parts: parts)
        case .postgreSQL(let address):
            try PostgreSQLStore(address, storageKey: storageKey, parts: parts, access: isShared ? .shared : .exclusive)
        }
    }
}
