import Foundation
import GRDBSQLite
import StoreSQLite
import WakuCrypto

/// The minimum of SQLite calls for a registration, a row of 700 bytes with a unique key, and for a subscription, which is found by three keys: its name, its
/// account and its token. In WAL mode with `synchronous=FULL`. For one thread.
final class BareDatabase {
    private let database: OpaquePointer
    private let upsert: OpaquePointer
    private let select: OpaquePointer
    private let insert: OpaquePointer
    private let installation = [UInt8](repeating: 65, count: 36)
    private let sealed = randomBytes(600)
    private var nextKey = 0
    private var freshKey = FreshKey()

    static let rowCount = 10_000
    /// The same for all threads, which share the rows.
    static let keys = (0..<rowCount).map { index in
        SHA256.hash(withUnsafeBytes(of: index, Array.init)) + SHA256.hash(withUnsafeBytes(of: ~index, Array.init))
    }

    /// - Parameter path: the database, which is created if missing.
    /// - Throws: ``BenchError``
    init(path: String, isReader: Bool = false) throws(BenchError) {
        SQLiteStore.setUpLibrary()
        var opened: OpaquePointer?
        guard sqlite3_open(path, &opened) == SQLITE_OK, let database = opened else {
            sqlite3_close(opened)
            throw BenchError(code: .disk, message: "SQLite can't make a database at \(path): choose another folder with --data")
        }
        self.database = database
        sqlite3_busy_timeout(database, 10_000)
        let set = """
            PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
            CREATE TABLE IF NOT EXISTS registration (
                id INTEGER PRIMARY KEY, key_hash BLOB NOT NULL, installation BLOB NOT NULL, version INTEGER NOT NULL, changed_at INTEGER NOT NULL,
                sealed BLOB, UNIQUE (key_hash, installation));
            CREATE TABLE IF NOT EXISTS subscription (
                id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, account BLOB NOT NULL, token BLOB NOT NULL, changed_at INTEGER NOT NULL,
                sealed BLOB NOT NULL);
            CREATE INDEX IF NOT EXISTS subscription_account ON subscription (account);
            CREATE INDEX IF NOT EXISTS subscription_token ON subscription (token);
            """
        guard sqlite3_exec(database, set, nil, nil, nil) == SQLITE_OK else {
            sqlite3_close(database)
            throw BenchError(code: .disk, message: "SQLite can't write to \(path): choose another folder with --data")
        }
        upsert = Self.prepare(
            database,
            """
            INSERT INTO registration (key_hash, installation, version, changed_at, sealed) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (key_hash, installation) DO UPDATE SET
                version = excluded.version, changed_at = excluded.changed_at, sealed = excluded.sealed
            """)
        select = Self.prepare(database, "SELECT version, sealed FROM registration WHERE key_hash = ? AND installation = ?")
        insert = Self.prepare(database, "INSERT INTO subscription (name, account, token, changed_at, sealed) VALUES (?, ?, ?, ?, ?)")
        if !isReader { try fill() }
    }

    deinit {
        sqlite3_finalize(upsert)
        sqlite3_finalize(select)
        sqlite3_finalize(insert)
        sqlite3_close(database)
    }

    /// The size of a database's pages, including those that are only in its write-ahead log.
    static func byteCount(path: String) throws(BenchError) -> Int {
        var opened: OpaquePointer?
        defer { sqlite3_close(opened) }
        guard sqlite3_open_v2(path, &opened, SQLITE_OPEN_READWRITE, nil) == SQLITE_OK, let database = opened else { throw .disk }
        let statement = prepare(database, "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
        defer { sqlite3_finalize(statement) }
        guard sqlite3_step(statement) == SQLITE_ROW else { throw .disk }
        return Int(sqlite3_column_int64(statement, 0))
    }

    private static func prepare(_ database: OpaquePointer, _ text: String) -> OpaquePointer {
        var statement: OpaquePointer?
        precondition(sqlite3_prepare_v3(database, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil) == SQLITE_OK, "bad SQL")
        guard let statement else { preconditionFailure("SQLite has no memory") }
        return statement
    }

    private func fill() throws(BenchError) {
        try run("BEGIN")
        for key in Self.keys { try write(key) }
        try run("COMMIT")
        try insert(rowCount: Self.rowCount)
    }

    /// Writes rows with new keys in one transaction.
    func upsert(rowCount: Int) throws(BenchError) {
        try run("BEGIN IMMEDIATE")
        for _ in 0..<rowCount {
            freshKey.advance()
            try write(freshKey.bytes)
        }
        try run("COMMIT")
    }

    /// Writes subscriptions in one transaction.
    func insert(rowCount: Int) throws(BenchError) {
        try run("BEGIN IMMEDIATE")
        for _ in 0..<rowCount {
            for column: Int32 in 1...3 {
                freshKey.advance()
                bind(insert, column, Array(freshKey.bytes[..<32]))
            }
            sqlite3_bind_int64(insert, 4, 1_700_000_000)
            bind(insert, 5, sealed)
            try step(insert)
        }
        try run("COMMIT")
    }

    /// Looks up rows in one transaction.
    func select(rowCount: Int) throws(BenchError) {
        try run("BEGIN")
        for _ in 0..<rowCount {
            nextKey = (nextKey + 7919) % Self.rowCount
            bind(select, 1, Self.keys[nextKey])
            bind(select, 2, installation)
            precondition(sqlite3_step(select) == SQLITE_ROW && sqlite3_column_bytes(select, 1) == 600, "a row is missing")
            sqlite3_reset(select)
        }
        try run("COMMIT")
    }

    private func write(_ key: [UInt8]) throws(BenchError) {
        bind(upsert, 1, key)
        bind(upsert, 2, installation)
        sqlite3_bind_int64(upsert, 3, 1)
        sqlite3_bind_int64(upsert, 4, 1_700_000_000_000_000_000)
        bind(upsert, 5, sealed)
        try step(upsert)
    }

    private func step(_ statement: OpaquePointer) throws(BenchError) {
        let result = sqlite3_step(statement)
        sqlite3_reset(statement)
        guard result == SQLITE_DONE else { throw .disk }
    }

    /// SQLITE_TRANSIENT, which is -1 as a pointer: SQLite takes a copy.
    private func bind(_ statement: OpaquePointer, _ index: Int32, _ bytes: [UInt8]) {
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        sqlite3_bind_blob(statement, index, bytes, Int32(bytes.count), transient)
    }

    private func run(_ text: String) throws(BenchError) {
        guard sqlite3_exec(database, text, nil, nil, nil) == SQLITE_OK else { throw .disk }
    }
}

/// A key of 64 pseudorandom bytes, which are cheaper than libcrypto's.
struct FreshKey {
    private(set) var bytes = [UInt8](repeating: 0, count: 64)
    private var state = UInt64.random(in: 0 ... .max)

    mutating func advance() {
        for index in 0..<8 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            withUnsafeBytes(of: state.byteSwapped) { bytes.replaceSubrange(index * 8..<index * 8 + 8, with: $0) }
        }
    }
}
