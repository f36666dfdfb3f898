import GRDBSQLite
import StoreSQLite
import WakuCrypto

/// The minimum of SQLite calls for a subscription: a row of 700 bytes that is found by three keys, its name, its account and its token, in WAL mode with
/// `synchronous=FULL`. For one thread.
final class BareSubscriptionTable {
    private let database: OpaquePointer
    private let statement: OpaquePointer
    private let sealed = randomBytes(600)
    private var keys = (name: FreshKey(), others: FreshKey())

    /// - Parameter path: the database, which is created if missing.
    /// - Throws: ``BenchError``
    init(path: String) throws(BenchError) {
        SQLiteStore.setUpLibrary()
        var opened: OpaquePointer?
        guard sqlite3_open(path, &opened) == SQLITE_OK, let database = opened else {
            sqlite3_close(opened)
            throw BenchError(code: .disk, message: "SQLite can't make a database at \(path): choose another folder with --data")
        }
        let tables = """
            PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;
            CREATE TABLE IF NOT EXISTS subscription (
                id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, account BLOB NOT NULL, token BLOB NOT NULL, changed_at INTEGER NOT NULL,
                sealed BLOB NOT NULL);
            CREATE INDEX IF NOT EXISTS subscription_account ON subscription (account);
            CREATE INDEX IF NOT EXISTS subscription_token ON subscription (token);
            """
        var statement: OpaquePointer?
        let text = "INSERT INTO subscription (name, account, token, changed_at, sealed) VALUES (?, ?, ?, ?, ?)"
        guard sqlite3_busy_timeout(database, 10_000) == SQLITE_OK, sqlite3_exec(database, tables, nil, nil, nil) == SQLITE_OK,
            sqlite3_prepare_v3(database, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil) == SQLITE_OK,
            let insert = statement
        else {
            sqlite3_close(database)
            throw BenchError(code: .disk, message: "SQLite can't write to \(path): choose another folder with --data")
        }
        (self.database, self.statement) = (database, insert)
        if isEmpty { try self.insert(rowCount: BareDatabase.rowCount) }
    }

    deinit {
        sqlite3_finalize(statement)
        sqlite3_close(database)
    }

    private var isEmpty: Bool {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        return sqlite3_prepare_v2(database, "SELECT 1 FROM subscription LIMIT 1", -1, &statement, nil) == SQLITE_OK
            && sqlite3_step(statement) == SQLITE_DONE
    }

    /// Writes rows with new keys in one transaction.
    func insert(rowCount: Int) throws(BenchError) {
        try run("BEGIN IMMEDIATE")
        for _ in 0..<rowCount {
            keys.name.advance()
            keys.others.advance()
            bind(1, keys.name.bytes[..<32])
            bind(2, keys.others.bytes[..<32])
            bind(3, keys.others.bytes[32...])
            sqlite3_bind_int64(statement, 4, 1_700_000_000)
            bind(5, sealed[...])
            let result = sqlite3_step(statement)
            sqlite3_reset(statement)
            guard result == SQLITE_DONE else { throw .disk }
        }
        try run("COMMIT")
    }

    /// SQLITE_TRANSIENT, which is -1 as a pointer: SQLite takes a copy.
    private func bind(_ index: Int32, _ bytes: ArraySlice<UInt8>) {
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        bytes.withUnsafeBytes { _ = sqlite3_bind_blob(statement, index, $0.baseAddress, Int32($0.count), transient) }
    }

    private func run(_ text: String) throws(BenchError) {
        guard sqlite3_exec(database, text, nil, nil, nil) == SQLITE_OK else { throw .disk }
    }
}
