import GRDB
import GRDBSQLite

/// A statement of the way of a message, by SQLite's own calls: the boxes that GRDB makes for arguments and rows cost more than most of these
/// statements do. It comes from GRDB's cache, and goes back there, without its arguments, when it ends.
///
/// Arguments are numbered from 1, columns from 0, as SQLite does.
struct HotStatement: ~Copyable {
    /// SQLITE_TRANSIENT, which is -1 as a pointer: SQLite takes a copy.
    private static var transient: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

    private let statement: Statement
    private let handle: OpaquePointer

    init(_ sql: String, _ db: Database) throws {
        statement = try db.cachedStatement(sql: sql)
        handle = statement.sqliteStatement
    }

    deinit {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
    }

    // MARK: Arguments

    borrowing func bind(_ index: Int32, _ bytes: [UInt8]) {
        if bytes.isEmpty {
            // No bytes may have no address, which would stand for NULL.
            sqlite3_bind_zeroblob(handle, index, 0)
        } else {
            sqlite3_bind_blob(handle, index, bytes, Int32(bytes.count), Self.transient)
        }
    }

    borrowing func bind(_ index: Int32, _ integer: Int64?) {
        if let integer { sqlite3_bind_int64(handle, index, integer) } else { sqlite3_bind_null(handle, index) }
    }

    // MARK: Running

    /// Whether there is a row.
    borrowing func next() throws -> Bool {
        let result = sqlite3_step(handle)
        switch result {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw DatabaseError(resultCode: ResultCode(rawValue: result))
        }
    }

    /// To its end.
    borrowing func run() throws {
        while try next() {}
    }

    // MARK: The row

    borrowing func isNull(_ column: Int32) -> Bool {
        sqlite3_column_type(handle, column) == SQLITE_NULL
    }

    borrowing func integer(_ column: Int32) throws -> Int64 {
        try require(column, SQLITE_INTEGER)
        return sqlite3_column_int64(handle, column)
    }

    borrowing func bytes(_ column: Int32) throws -> [UInt8] {
        try require(column, SQLITE_BLOB)
        let count = Int(sqlite3_column_bytes(handle, column))
        return Array(UnsafeRawBufferPointer(start: sqlite3_column_blob(handle, column), count: count))
    }

    private borrowing func require(_ column: Int32, _ type: Int32) throws(AlteredRow) {
        guard sqlite3_column_type(handle, column) == type else { throw AlteredRow() }
    }
}

/// A row holds something else than was written: what stands in a damaged page is anything.
struct AlteredRow: Error {}
