package import Core
import CSQLite
import GRDB
import GRDBSQLite
package import WakuCrypto

/// The push server's tables in a database of status-go.
///
///     push_notification_server_registrations(public_key, installation_id, version, registration)
///     push_notification_server_identity(private_key)
///     push_notifications_server_config(identity)
///     push_notification_server_notifications(id): the requests that it handled
///     transport_message_cache(id, timestamp): the Waku messages that it handled, in milliseconds
///
/// The file is untrusted: only plain tables are read, and values, memory and work are bounded.
package final class StatusGoDatabase {
    static let registrations = "push_notification_server_registrations"
    static let identity = "push_notification_server_identity"
    static let config = "push_notifications_server_config"
    static let requests = "push_notification_server_notifications"
    static let messages = "transport_message_cache"
    /// A registration has 3 MiB at most.
    private static let valueByteLimit: Int32 = 4 << 20
    /// Rows are returned together up to this size.
    private static let pageByteLimit = 16 << 20

    /// The push server's tables in the database, with their numbers of rows.
    package let tables: [String: Int]
    /// Whether the database lists the requests that the server handled.
    package var hasHandledRequests: Bool { tables[Self.requests] != nil }
    private let path: String
    private let connection: DatabaseQueue
    /// SQLite reads from it while the connection is open.
    private let image: SecretBytes
    private let budget: ReadingBudget

    /// - Parameters:
    ///   - image: the plain database: see ``DatabaseFile``.
    ///   - path: the path to name in messages.
    package convenience init(_ image: SecretBytes, path: String) throws(StatusGoImportError) {
        try self.init(image, path: path, budget: ReadingBudget(byteCount: image.count))
    }

    init(_ image: SecretBytes, path: String, budget: ReadingBudget) throws(StatusGoImportError) {
        (self.image, self.path, self.budget) = (image, path, budget)
        do {
            connection = try DatabaseQueue()
            tables = try connection.inDatabase { database in
                try Self.open(image, in: database, budget)
                var counts: [String: Int] = [:]
                for name in [Self.registrations, Self.identity, Self.config, Self.requests, Self.messages] {
                    guard try Self.isPresent(name, in: database, path) else { continue }
                    // The condition makes SQLite count row by row, so that the budget applies.
                    counts[name] = try Int.fetchOne(database, sql: "SELECT COUNT(*) FROM \(name) WHERE rowid IS NOT NULL")
                }
                return counts
            }
        } catch let error as StatusGoImportError {
            throw error
        } catch {
            throw budget.isSpent ? Self.tooMuchWork(path) : Self.damaged(path)
        }
        guard tables[Self.registrations] != nil else {
            throw StatusGoImportError(
                "\(path) has no table \(Self.registrations): it is not a push server's database, or its -wal file is missing")
        }
    }

    private static func open(_ image: SecretBytes, in database: Database, _ budget: ReadingBudget) throws {
        let status = image.withBytes { bytes in
            sqlite3_deserialize(
                database.sqliteConnection, "main", UnsafeMutablePointer(mutating: bytes.baseAddress), Int64(bytes.count),
                Int64(bytes.count), UInt32(SQLITE_DESERIALIZE_READONLY))
        }
        guard status == SQLITE_OK, let handle = database.sqliteConnection else { throw DatabaseError(resultCode: .SQLITE_NOMEM) }
        let hardened = waku_sqlite_harden(UnsafeMutableRawPointer(handle))
        guard hardened == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: hardened)) }
        waku_sqlite_limit(UnsafeMutableRawPointer(handle), valueByteLimit)
        budget.limit(handle)
    }

    /// - Throws: ``StatusGoImportError`` if it exists but is not a table as created by status-go.
    private static func isPresent(_ name: String, in database: Database, _ path: String) throws -> Bool {
        guard let kind = try Row.fetchOne(database, sql: "PRAGMA main.table_list(\(name))") else { return false }
        let columns = try Row.fetchAll(database, sql: "PRAGMA main.table_xinfo(\(name))")
        let isPlain = kind["type"] as String? == "table" && kind["wr"] as Int? == 0 && columns.allSatisfy { $0["hidden"] as Int? == 0 }
        guard isPlain else { throw StatusGoImportError("\(path): \(name) is not a table of status-go: it is a view, virtual or computed") }
        return true
    }

    private static func damaged(_ path: String) -> StatusGoImportError {
        StatusGoImportError("\(path) is damaged: import a backup of the database")
    }

    private static func tooMuchWork(_ path: String) -> StatusGoImportError {
        StatusGoImportError("\(path) takes too much work to read: it is damaged")
    }

    /// The keys in the database, normally one. An account's database has a row with an empty identity.
    package func identities() throws(StatusGoImportError) -> [PrivateKey] {
        let columns = [(Self.identity, "private_key"), (Self.config, "identity")]
        return try read { database in
            var keys: [PrivateKey] = []
            for (table, column) in columns where self.tables[table] != nil {
                guard try database.columns(in: table).contains(where: { $0.name == column }) else { continue }
                let values = try DatabaseValue.fetchAll(
                    database, sql: "SELECT DISTINCT \(column) FROM \(table) WHERE length(\(column)) > 0 LIMIT 10")
                for value in values {
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
    ///   - limit: number of rows. Large rows make it fewer.
    /// - Returns: nil after the last row.
    package func rows(after id: Int64?, limit: Int) throws(StatusGoImportError) -> (rows: [StatusGoRow], last: Int64)? {
        try read { database in
            let cursor = try Row.fetchCursor(
                database,
                sql: """
                    SELECT public_key, installation_id, version, registration, rowid FROM \(Self.registrations)
                    WHERE rowid > ? ORDER BY rowid LIMIT ?
                    """, arguments: [id ?? .min, limit])
            var (rows, last, byteCount) = ([StatusGoRow](), id ?? .min, 0)
            while byteCount < Self.pageByteLimit, let row = try cursor.next() {
                // A table may have a column of that name.
                guard let rowID = Int64.fromDatabaseValue(row[4] as DatabaseValue), rowID > last else { throw Self.damaged(self.path) }
                let read = StatusGoRow(row)
                rows.append(read)
                byteCount += read.byteCount
                last = rowID
            }
            return rows.isEmpty ? nil : (rows, last)
        }
    }

    // MARK: Handled messages

    /// A page of the ids of requests that the server handled, the newest first: each is the id of the request's envelope.
    ///
    /// - Parameter id: reads rows before this one; nil from the newest.
    /// - Returns: nil after the last row.
    package func handledRequests(before id: Int64?, limit: Int) throws(StatusGoImportError) -> (ids: [[UInt8]], last: Int64)? {
        guard hasHandledRequests else { return nil }
        return try read { database in
            // The first row may have any id.
            let condition = id == nil ? "" : "WHERE rowid < ?"
            let rows = try Row.fetchAll(
                database, sql: "SELECT substr(id, 1, 33), rowid FROM \(Self.requests) \(condition) ORDER BY rowid DESC LIMIT ?",
                arguments: id.map { [$0, limit] } ?? [limit])
            guard let row = rows.last else { return nil }
            guard let last = Int64.fromDatabaseValue(row[1] as DatabaseValue), id.map({ last < $0 }) ?? true else {
                throw Self.damaged(self.path)
            }
            let ids = rows.compactMap { row in
                if case .blob(let id) = (row[0] as DatabaseValue).storage, id.count == Self.requestIDByteCount { Array(id) } else { nil }
            }
            return (ids, last)
        }
    }

    private static let requestIDByteCount = 32

    /// When the server handled its last message: the newest time in the database that is not in the future; nil if it keeps none.
    package func lastHandled(at now: Timestamp) throws(StatusGoImportError) -> Timestamp? {
        guard tables[Self.messages] != nil else { return nil }
        return try read { database in
            guard try database.columns(in: Self.messages).contains(where: { $0.name == "timestamp" }) else { return nil }
            let milliseconds = try DatabaseValue.fetchOne(
                database,
                sql: "SELECT MAX(timestamp) FROM \(Self.messages) WHERE typeof(timestamp) = 'integer' AND timestamp BETWEEN 1 AND ?",
                arguments: [now.rawValue / 1_000_000])
            return milliseconds.flatMap(Int64.fromDatabaseValue).map { Timestamp(rawValue: $0 * 1_000_000) }
        }
    }

    private func read<R>(_ body: (Database) throws -> R) throws(StatusGoImportError) -> R {
        do {
            return try connection.inDatabase(body)
        } catch let error as StatusGoImportError {
            throw error
        } catch {
            throw budget.isSpent ? Self.tooMuchWork(path) : Self.damaged(path)
        }
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

    fileprivate var byteCount: Int { (keyHash?.count ?? 0) + (installationID?.count ?? 0) + (registration?.count ?? 0) }
}
