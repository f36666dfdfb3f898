import GRDB
import GRDBSQLite
import Storage

/// A statement on the hot path, run through SQLite's C interface: GRDB's boxing of arguments and rows costs more than most of these statements. The
/// statement comes from GRDB's cache and is returned there, with its arguments cleared, when it ends.
///
/// Arguments are numbered from 1, columns from 0, as SQLite does.
struct HotStatement: ~Copyable {
    /// SQLITE_TRANSIENT (-1 as a pointer): SQLite copies the bytes.
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
            // An empty buffer may have a null address, which would bind NULL.
            sqlite3_bind_zeroblob(handle, index, 0)
        } else {
            sqlite3_bind_blob(handle, index, bytes, Int32(bytes.count), Self.transient)
        }
    }

    borrowing func bind(_ index: Int32, _ integer: Int64) {
        sqlite3_bind_int64(handle, index, integer)
    }

    borrowing func bind(_ index: Int32, _ value: Value) {
        switch value {
        case .null: sqlite3_bind_null(handle, index)
        case .integer(let integer): bind(index, integer)
        case .text(let text): sqlite3_bind_text(handle, index, text, Int32(text.utf8.count), Self.transient)
        case .bytes(let bytes): bind(index, bytes)
        }
    }

    // MARK: Running

    /// Steps to the next row; false at the end.
    borrowing func next() throws -> Bool {
        let result = sqlite3_step(handle)
        switch result {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw DatabaseError(resultCode: ResultCode(rawValue: result))
        }
    }

    /// Steps to the end.
    borrowing func run() throws {
        while try next() {}
    }

    // MARK: The row

    /// The stored value, regardless of the column's declared type.
    borrowing func value(_ column: Int32) -> Value {
        switch sqlite3_column_type(handle, column) {
        case SQLITE_INTEGER: .integer(sqlite3_column_int64(handle, column))
        case SQLITE_BLOB: .bytes(bytes(column))
        case SQLITE_TEXT: .text(String(decoding: bytes(column), as: UTF8.self))
        default: .null
        }
    }

    private borrowing func bytes(_ column: Int32) -> [UInt8] {
        let count = Int(sqlite3_column_bytes(handle, column))
        return Array(UnsafeRawBufferPointer(start: sqlite3_column_blob(handle, column), count: count))
    }
}
