import CSQLite
import GRDB

extension Configuration {
    /// Triggers and views do not act, functions that are unsafe in a schema cannot be called from one, and no statement can write to the schema or
    /// damage the file. This program's schema has neither triggers, views nor foreign keys.
    static var hardened: Configuration {
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        configuration.prepareDatabase { try harden($0) }
        return configuration
    }

    /// As ``hardened``, for untrusted files: also limits the cost of a row or of an expression in the schema.
    static var untrusted: Configuration {
        var configuration = hardened
        configuration.prepareDatabase { db in
            if let connection = db.sqliteConnection { waku_sqlite_limit(UnsafeMutableRawPointer(connection), 64 << 20) }
            try db.execute(sql: "PRAGMA cell_size_check = ON")
        }
        return configuration
    }

    private static func harden(_ db: Database) throws {
        guard let connection = db.sqliteConnection, waku_sqlite_harden(UnsafeMutableRawPointer(connection)) == 0 else {
            throw DatabaseError(resultCode: .SQLITE_MISUSE)
        }
    }
}
