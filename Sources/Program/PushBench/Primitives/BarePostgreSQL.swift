import CPostgres
import StorePostgreSQL
import WakuCrypto

/// The minimum of libpq calls for the operations of ``BareDatabase``: prepared statements in binary format, one round trip per transaction.
/// For one thread, which it blocks.
final class BarePostgreSQL {
    private enum Kind: String {
        case upsert, select
    }

    /// Argument lengths: key, installation, version, time, contents. `select` uses the first two.
    private static let lengths: [Int32] = [64, 36, 8, 8, 600]
    private static let formats: [Int32] = [1, 1, 1, 1, 1]
    /// Type ids of `pg_type`: bytea and bigint.
    private static let types: [UInt32] = [17, 17, 20, 20, 17]

    private let address: PostgreSQLAddress
    /// Opens the connection; its functions are not used afterwards.
    private let session: PostgreSQLConnection
    private let libpq: UnsafePointer<cpostgres>
    private let connection: OpaquePointer
    private let server: ServerProcess?
    private let arguments: UnsafeMutablePointer<CChar>
    private let values: [UnsafePointer<CChar>?]
    private var freshKey = FreshKey()
    private var nextKey = 0

    /// - Parameters:
    ///   - address: the database, with an empty schema.
    ///   - isReader: whether the table already exists.
    /// - Throws: `StoreError`, ``BenchError``
    init(_ address: PostgreSQLAddress, isReader: Bool) throws {
        self.address = address
        session = try PostgreSQLConnection.open(address, name: "waku-push bench")
        (libpq, connection) = (session.library.table, session.connection)
        server = ServerProcess(session.backendID, of: session)
        let argumentBytes: [UInt8] =
            [UInt8](repeating: 0, count: 64) + [UInt8](repeating: 65, count: 36)
            + [Int64(1), 1_700_000_000_000_000_000].flatMap { withUnsafeBytes(of: $0.bigEndian, Array.init) } + randomBytes(600)
        let arguments = UnsafeMutablePointer<CChar>.allocate(capacity: argumentBytes.count)
        for (index, byte) in argumentBytes.enumerated() { arguments[index] = CChar(bitPattern: byte) }
        self.arguments = arguments
        var offset = 0
        values = Self.lengths.map { length in
            defer { offset += Int(length) }
            return UnsafePointer(arguments + offset)
        }
        if !isReader { try create() }
        try prepare(
            .upsert,
            """
            INSERT INTO registration (key_hash, installation, version, changed_at, sealed) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (key_hash, installation) DO UPDATE SET
                version = excluded.version, changed_at = excluded.changed_at, sealed = excluded.sealed
            """, argumentCount: 5)
        try prepare(.select, "SELECT version, sealed FROM registration WHERE key_hash = $1 AND installation = $2", argumentCount: 2)
        guard !isReader else { return }
        for key in BareDatabase.keys { try send(.upsert, key, argumentCount: 5) }
        try exchange()
    }

    deinit {
        arguments.deallocate()
    }

    private func create() throws(BenchError) {
        let sql = """
            CREATE TABLE registration (
                id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key_hash bytea NOT NULL, installation bytea NOT NULL, version bigint NOT NULL,
                changed_at bigint NOT NULL, sealed bytea, UNIQUE (key_hash, installation))
            """
        try check(libpq.pointee.PQsendQueryParams(connection, sql, 0, nil, nil, nil, nil, 1))
        try exchange()
    }

    private func prepare(_ kind: Kind, _ sql: String, argumentCount: Int32) throws(BenchError) {
        try check(libpq.pointee.PQsendPrepare(connection, kind.rawValue, sql, argumentCount, Self.types))
        try exchange()
    }

    // MARK: Operations

    /// Writes rows with new keys in one transaction.
    func upsert(rowCount: Int) throws(BenchError) {
        for _ in 0..<rowCount {
            freshKey.advance()
            try send(.upsert, freshKey.bytes, argumentCount: 5)
        }
        try exchange()
    }

    /// Looks up rows in one transaction.
    func select(rowCount: Int) throws(BenchError) {
        for _ in 0..<rowCount {
            nextKey = (nextKey + 7919) % BareDatabase.rowCount
            try send(.select, BareDatabase.keys[nextKey], argumentCount: 2)
        }
        let found = try exchange()
        precondition(found == rowCount, "a row is missing")
    }

    private func send(_ kind: Kind, _ key: [UInt8], argumentCount: Int32) throws(BenchError) {
        UnsafeMutableRawPointer(arguments).copyMemory(from: key, byteCount: key.count)
        try check(
            libpq.pointee.PQsendQueryPrepared(connection, kind.rawValue, argumentCount, values, Self.lengths, Self.formats, 1))
    }

    /// Ends a transaction: all statements before a sync are one transaction, which is on disk when its results arrive. Returns the number of rows.
    @discardableResult
    private func exchange() throws(BenchError) -> Int {
        try check(libpq.pointee.PQpipelineSync(connection))
        var rowCount = 0
        while true {
            // Sends buffered data, and waits. nil marks the end of a statement's results.
            guard let result = libpq.pointee.PQgetResult(connection) else {
                try check(libpq.pointee.PQstatus(connection) == UInt32(CCONNECTION_OK) ? 1 : 0)
                continue
            }
            defer { libpq.pointee.PQclear(result) }
            switch Int(libpq.pointee.PQresultStatus(result)) {
            case Int(CPGRES_PIPELINE_SYNC): return rowCount
            case Int(CPGRES_COMMAND_OK): break
            case Int(CPGRES_TUPLES_OK):
                rowCount += Int(libpq.pointee.PQntuples(result))
                precondition(libpq.pointee.PQgetlength(result, 0, 1) == 600, "a row is wrong")
            default: try check(0)
            }
        }
    }

    private func check(_ success: Int32) throws(BenchError) {
        guard success != 1 else { return }
        throw BenchError(code: .unavailable, message: "PostgreSQL (\(address)) failed during the measurement: see the server's log")
    }

    /// CPU time that the server has spent for this connection so far, in nanoseconds; see ``ServerProcess``.
    func serverTime() -> UInt64 { server?.time ?? 0 }
}
