import GRDB
import GRDBSQLite
package import WakuCrypto

/// The push server's tables in a database of status-go.
///
///     push_notification_server_registrations(public_key, installation_id, version, registration)
///     push_notification_server_identity(private_key)
///     push_notifications_server_config(identity)
package final class StatusGoDatabase {
    private static let registrations = "push_notification_server_registrations"

    private let path: String
    private let connection: DatabaseQueue
    /// SQLite reads from it as long as the connection is open.
    private let image: SecretBytes

    /// - Parameters:
    ///   - image: the plain database: see ``DatabaseFile``.
    ///   - path: for messages.
    /// - Throws: ``StatusGoImportError``
    package init(_ image: SecretBytes, path: String) throws(StatusGoImportError) {
        self.image = image
        self.path = path
        do {
            connection = try DatabaseQueue()
            let hasTable = try connection.inDatabase { database in
                let status = image.withBytes { bytes in
                    sqlite3_deserialize(
                        database.sqliteConnection, "main", UnsafeMutablePointer(mutating: bytes.baseAddress), Int64(bytes.count),
                        Int64(bytes.count), UInt32(SQLITE_DESERIALIZE_READONLY))
                }
                guard status == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: status)) }
                return try database.tableExists(Self.registrations)
            }
            guard hasTable else {
                throw StatusGoImportError("\(path) has no table \(Self.registrations): it is not a push server's database")
            }
        } catch let error as StatusGoImportError {
            throw error
        } catch {
            throw Self.damaged(path)
        }
    }

    private static func damaged(_ path: String) -> StatusGoImportError {
        StatusGoImportError("\(path) is damaged: import a backup of the database")
    }

    /// The keys that the database names, which should be one.
    ///
    /// - Throws: ``StatusGoImportError``
    package func identities() throws(StatusGoImportError) -> [PrivateKey] {
        let columns = [("push_notification_server_identity", "private_key"), ("push_notifications_server_config", "identity")]
        return try read { database in
            var keys: [PrivateKey] = []
            for (table, column) in columns where try database.tableExists(table) {
                guard try database.columns(in: table).contains(where: { $0.name == column }) else { continue }
                for value in try DatabaseValue.fetchAll(database, sql: "SELECT \(column) FROM \(table) WHERE \(column) IS NOT NULL") {
                    guard let key = Self.key(value) else {
                        throw StatusGoImportError("\(self.path): \(table).\(column) does not contain a secp256k1 key")
                    }
                    if !keys.contains(where: { $0.publicKey == key.publicKey }) { keys.append(key) }
                }
            }
            return keys
        }
    }

    /// Bytes, or hexadecimal digits as text or as bytes.
    private static func key(_ value: DatabaseValue) -> PrivateKey? {
        let content: [UInt8] =
            switch value.storage {
            case .blob(let data): Array(data)
            case .string(let text): Array(text.utf8)
            default: []
            }
        if content.count == PrivateKey.byteCount { return try? PrivateKey(bytes: content) }
        return PrivateKey(hexText: String(decoding: content, as: UTF8.self))
    }

    /// A page of rows, in the order of their ids.
    ///
    /// - Parameters:
    ///   - id: reads rows after this one; nil from the beginning.
    ///   - limit: number of rows.
    /// - Returns: nil after the last row.
    /// - Throws: ``StatusGoImportError``
    package func rows(after id: Int64?, limit: Int) throws(StatusGoImportError) -> (rows: [StatusGoRow], last: Int64)? {
        try read { database in
            let rows = try Row.fetchAll(
                database,
                sql: """
                    SELECT public_key, installation_id, version, registration, rowid FROM \(Self.registrations)
                    WHERE rowid > ? ORDER BY rowid LIMIT ?
                    """, arguments: [id ?? .min, limit])
            guard let row = rows.last else { return nil }
            // A table may have a column of that name.
            guard let last = Int64.fromDatabaseValue(row[4] as DatabaseValue), last > id ?? .min else { throw Self.damaged(self.path) }
            return (rows.map { StatusGoRow($0) }, last)
        }
    }

    private func read<R>(_ body: (Database) throws -> R) throws(StatusGoImportError) -> R {
        do {
            return try connection.inDatabase(body)
        } catch let error as StatusGoImportError {
            throw error
        } catch {
            throw Self.damaged(path)
        }
    }
}

extension PrivateKey {
    /// A key as hexadecimal digits, with or without 0x, as go-ethereum's key files have it.
    package init?(hexText text: String) {
        let digits = text.hasPrefix("0x") ? String(text.dropFirst(2)) : text
        guard digits.utf8.count == 2 * PrivateKey.byteCount, let bytes = bytes(hex: digits), let key = try? PrivateKey(bytes: bytes) else {
            return nil
        }
        self = key
    }
}

extension StatusGoRow {
    fileprivate init(_ row: Row) {
        func bytes(_ index: Int) -> [UInt8]? {
            switch (row[index] as DatabaseValue).storage {
            case .blob(let data): Array(data)
            case .string(let text): Array(text.utf8)
            default: nil
            }
        }
        let version: Int64? = Int64.fromDatabaseValue(row[2])
        self.init(keyHash: bytes(0), installationID: bytes(1), version: version, registration: bytes(3))
    }
}
