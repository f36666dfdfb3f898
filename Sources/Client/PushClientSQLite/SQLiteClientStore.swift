import Foundation
import GRDB
public import PushClient
public import WakuCrypto

/// A client's state in one SQLite file.
///
///     record: name (SHA-256 of the record's name, 32 bytes) → body (AES-256-GCM, nonce first: length of name(2) ‖ name ‖ value)
///
/// Every record is encrypted with a key derived from the identity, with its hashed name as associated data: the file reveals only the number and the
/// lengths of records. A commit is one transaction with `synchronous=FULL`. The database files are readable by their owner only; a
/// second client that opens the same folder gets `ClientStoreError.Code.locked`.
public final class SQLiteClientStore: ClientStore {
    private static let fileName = "client.sqlite"
    /// `user_version` of the file.
    private static let schemaVersion = 1
    private static let checkName = Array("identity".utf8)

    private let lock: ClientFolderLock
    private let database: DatabaseQueue
    private let key: SymmetricKey
    private let path: String

    /// Opens the state in a folder, creating the folder if it is missing.
    ///
    /// - Parameters:
    ///   - folder: Used by this client only.
    ///   - identity: The client's identity key, required to decrypt the state.
    public convenience init(folder: String, identity: PrivateKey) throws(ClientStoreError) {
        try self.init(lock: ClientFolderLock(folder), identity: identity)
    }

    private init(lock: ClientFolderLock, identity: PrivateKey) throws(ClientStoreError) {
        self.lock = lock
        path = lock.folder + "/" + Self.fileName
        key = identity.derivedKey(purpose: "waku-push client store 1")
        database = try Self.open(path)
        try setUp()
    }

    // MARK: Opening

    private static func open(_ path: String) throws(ClientStoreError) -> DatabaseQueue {
        // SQLite gives its other files the mode of this one.
        let file = Foundation.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else {
            throw ClientStoreError(
                opening: path, errno, denied: "client state \(path) can't be opened: give this user access to the folder")
        }
        var status = stat()
        let isKnown = fstat(file, &status) == 0
        close(file)
        guard !isKnown || status.st_mode & 0o077 == 0 else {
            let mode = String(status.st_mode & 0o777, radix: 8)
            throw ClientStoreError(
                code: .permission, message: "client state \(path) can be read by others (mode 0\(mode)): chmod 600 \(path)")
        }
        var configuration = Configuration()
        configuration.journalMode = .wal
        configuration.busyMode = .timeout(2)
        do {
            return try DatabaseQueue(path: path, configuration: configuration)
        } catch {
            throw ClientStoreError(explaining: error, in: path)
        }
    }

    private func setUp() throws(ClientStoreError) {
        let key = key
        let check = Self.checkName
        let path = path
        do {
            try database.writeWithoutTransaction { db in
                // GRDB sets NORMAL, under which a commit may be lost when the machine stops.
                try db.execute(sql: "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON")
            }
            try database.write { db in
                let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
                guard version <= Self.schemaVersion else {
                    throw ClientStoreError(code: .newer, message: "client state \(path) was made by a later version: use that one")
                }
                if version == 0 {
                    try db.execute(sql: "CREATE TABLE record (name BLOB PRIMARY KEY NOT NULL, body BLOB NOT NULL) WITHOUT ROWID")
                    try db.execute(sql: "CREATE TABLE seal (body BLOB NOT NULL)")
                    try db.execute(
                        sql: "INSERT INTO seal VALUES (?)",
                        arguments: [Data(AESGCM.seal(check, key: key, layout: .nonceFirst))])
                    try db.execute(sql: "PRAGMA user_version = \(Self.schemaVersion)")
                }
                let seal = try Data.fetchOne(db, sql: "SELECT body FROM seal") ?? Data()
                guard (try? AESGCM.open(Array(seal), key: key, layout: .nonceFirst)) == check else {
                    throw ClientStoreError(
                        code: .otherIdentity,
                        message: "client state \(path) belongs to another identity: give its key, or choose another folder")
                }
            }
        } catch {
            throw ClientStoreError(explaining: error, in: path)
        }
    }

    // MARK: ClientStore

    /// Decrypts all records into memory.
    ///
    /// - Throws: `ClientStoreError`, with `damaged` when any record can't be decrypted.
    public func load() async throws(ClientStoreError) -> [String: [UInt8]] {
        let rows: [(name: Data?, body: Data?)]
        do {
            rows = try await database.read { db in
                // In a damaged file a value may have any type, for which GRDB's subscript for Data traps.
                try Row.fetchAll(db, sql: "SELECT name, body FROM record").map { row in
                    (Data.fromDatabaseValue(row["name"]), Data.fromDatabaseValue(row["body"]))
                }
            }
        } catch {
            throw ClientStoreError(explaining: error, in: path)
        }
        var values: [String: [UInt8]] = [:]
        for row in rows {
            guard let body = row.body, let hash = row.name, let (name, value) = opened(Array(body), under: Array(hash)) else {
                throw ClientStoreError(
                    code: .damaged, message: "client state \(path) is damaged: restore it from a backup, or choose another folder")
            }
            values[name] = value
        }
        return values
    }

    /// Writes all changes in one transaction, and returns when they are on disk.
    ///
    /// - Parameter changes: Names of at most 65,535 bytes of UTF-8; nil removes a name.
    /// - Throws: `ClientStoreError`, with `unavailable` for a longer name.
    public func commit(_ changes: [String: [UInt8]?]) async throws(ClientStoreError) {
        guard !changes.isEmpty else { return }
        var sealed: [(name: Data, body: Data?)] = []
        for (name, value) in changes {
            // The 2-byte length field can't describe a longer name.
            guard name.utf8.count <= UInt16.max else {
                throw ClientStoreError(code: .unavailable, message: "client state \(path) can't be written: a record's name is too long")
            }
            let hash = SHA256.hash(Array(name.utf8))
            sealed.append((Data(hash), value.map { Data(seal($0, name: name, under: hash)) }))
        }
        do {
            try await database.write { [sealed] db in
                for (name, body) in sealed {
                    if let body {
                        try db.execute(
                            sql: "INSERT INTO record VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET body = excluded.body",
                            arguments: [name, body])
                    } else {
                        try db.execute(sql: "DELETE FROM record WHERE name = ?", arguments: [name])
                    }
                }
            }
        } catch {
            throw ClientStoreError(explaining: error, in: path)
        }
    }

    private func seal(_ value: [UInt8], name: String, under hash: [UInt8]) -> [UInt8] {
        let nameBytes = Array(name.utf8)
        let length = withUnsafeBytes(of: UInt16(truncatingIfNeeded: nameBytes.count).bigEndian, Array.init)
        return AESGCM.seal(length + nameBytes + value, key: key, layout: .nonceFirst, associatedData: hash)
    }

    private func opened(_ body: [UInt8], under hash: [UInt8]) -> (String, [UInt8])? {
        guard let plain = try? AESGCM.open(body, key: key, layout: .nonceFirst, associatedData: hash), plain.count >= 2 else { return nil }
        let length = Int(plain[0]) << 8 | Int(plain[1])
        guard plain.count >= 2 + length, let name = String(validating: plain[2..<2 + length], as: UTF8.self) else { return nil }
        return (name, Array(plain[(2 + length)...]))
    }

    /// SQLite's durability settings: `synchronous` 2 is FULL.
    package func pragmas() async throws -> (synchronous: Int, journal: String) {
        try await database.read { db in
            (try Int.fetchOne(db, sql: "PRAGMA synchronous") ?? -1, try String.fetchOne(db, sql: "PRAGMA journal_mode") ?? "")
        }
    }
}
