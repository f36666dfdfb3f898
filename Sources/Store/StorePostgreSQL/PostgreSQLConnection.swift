import CPostgres
import Foundation
import Storage

/// A session with a server, in libpq's pipeline mode. Calls block the thread: they `poll` the socket.
///
/// Not thread-safe: its owner must ensure that one thread at a time uses it.
package final class PostgreSQLConnection {
    /// Defaults that the address may override. Of several hosts, the writable one is used.
    private static let defaults: [(name: String, value: String)] = [
        ("target_session_attrs", "read-write"), ("tcp_user_timeout", "4000"), ("keepalives_idle", "5"), ("keepalives_interval", "2"),
        ("keepalives_count", "2"), ("fallback_application_name", "waku-push"),
    ]
    /// Settings that the address may not override.
    private static let fixed: [(name: String, value: String)] = [("client_encoding", "UTF8")]
    /// How often a connection that waits for an answer or for notifications looks whether its server is a former primary.
    static let lookout = Duration.seconds(1)
    /// The time that a server has for an answer to another connection.
    private static let answerLimit = Duration.seconds(3)

    package let library: PostgreSQLLibrary
    /// The address with only the host of this connection.
    package let address: PostgreSQLAddress
    /// libpq's `PGconn`, for direct calls to libpq. Closed when this object is deallocated.
    package let connection: OpaquePointer
    private let warnings = WarningCounter()
    /// nil while statements without a time limit run.
    var silenceLimit: Duration?
    /// How long the server may be silent here as long as it answers another connection: a statement may read a whole table, or wait for a lock.
    var longestSilence = Duration.zero
    /// Names of the server's prepared statements, by SQL text.
    private var prepared: [String: String] = [:]
    private var preparedCount = 0
    /// The timeline of the server's write-ahead log: a promoted standby starts the next one. 0 before it was read.
    package internal(set) var timeline: UInt32 = 0
    /// Which cluster of servers this one belongs to: its standbys have the same identifier. nil before it was read, or if the role may not read it.
    package internal(set) var systemIdentifier: UInt64?
    private let known: KnownPrimary
    private var isBroken = false
    /// Whether it was lost since the server did not answer in time.
    private(set) var wasSilent = false
    /// Statements to send before the next ones.
    private var preceding: [Statement] = []
    /// Exchanges whose results have not been read, and the number of messages sent in them.
    private var unawaited = (exchanges: 0, sent: 0)
    /// The number of exchanges that the server has answered.
    private(set) var answeredCount = 0

    private var table: cpostgres { library.table.pointee }

    // MARK: Opening

    /// - Parameters:
    ///   - address: one host. Of several, libpq leaves one only when it refuses the connection.
    ///   - limit: the time limit for connecting.
    init(to address: PostgreSQLAddress, within limit: Duration = PostgreSQLHost.onlyHostLimit) throws(StoreError) {
        self.address = address
        library = try PostgreSQLAddress.library()
        silenceLimit = address.silenceLimit
        known = .of(address.connectionString)
        connection = try library.startConnecting(Self.parameters(of: address))
        // Without a notice receiver, libpq writes to standard error.
        warnings.listen(on: connection, library)
        guard connect(until: .now + limit) else {
            let reason = Self.reason(
                text(table.PQerrorMessage(connection)), at: address.description, resolvedTo: address.parameters["hostaddr"])
            throw StoreError(code: .unavailable, message: "PostgreSQL (\(address)) can't be reached: \(reason)")
        }
        guard table.PQsetnonblocking(connection, 1) == 0, table.PQenterPipelineMode(connection) == 1 else {
            throw StoreError(code: .unavailable, message: "libpq does not enter pipeline mode")
        }
    }

    deinit {
        table.PQfinish(connection)
    }

    /// The parameters for connecting, without those that libpq adds.
    static func parameters(of address: PostgreSQLAddress) -> [(name: String, value: String)] {
        defaults + address.parameters.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } + fixed
    }

    /// Applies the time limit itself, since libpq applies `connect_timeout` only in its blocking functions.
    private func connect(until deadline: ContinuousClock.Instant) -> Bool {
        var state = UInt32(CPGRES_POLLING_WRITING)
        while table.PQstatus(connection) != UInt32(CCONNECTION_BAD) {
            switch Int(state) {
            case Int(CPGRES_POLLING_OK): return true
            case Int(CPGRES_POLLING_READING), Int(CPGRES_POLLING_WRITING):
                let events = Int(state) == Int(CPGRES_POLLING_READING) ? POLLIN : POLLOUT
                guard wait(for: Int16(events), until: deadline) else { return false }
                state = table.PQconnectPoll(connection)
            default: return false
            }
        }
        return false
    }

    /// The reason of a failed attempt to connect. libpq's message names hosts, users and databases, but no rows and no passwords. It ends with
    /// `failed:` while libpq waits for the host that it names.
    ///
    /// - Parameters:
    ///   - address: the host as the error names it, so that the reason need not repeat it.
    ///   - resolved: the IP address of that host, if it was given to libpq.
    static func reason(_ message: String, at address: String, resolvedTo resolved: String? = nil) -> String {
        let lines = message.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { line in !line.isEmpty && !hints.contains { line.hasPrefix($0) } }.map { withoutHost($0, address, resolved) }
        let reason = lines.joined(separator: "; ")
        if reason.isEmpty { return "it does not answer" }
        if let end = remedies.keys.first(where: reason.hasSuffix), let remedy = remedies[end] { return reason.dropLast(end.count) + remedy }
        return reason.hasSuffix(":") ? reason + " it does not answer" : reason
    }

    /// Beginnings of lines that add nothing to libpq's message.
    private static let hints = [
        "Is the server running", "This probably means the server terminated", "before or while processing the request",
    ]

    /// By the ends of messages in which libpq does not say why.
    private static let remedies = [
        "session is read-only": "session is read-only (a standby, or transactions of this role are read-only): give the primary",
        "certificate verify failed":
            "the server's certificate is not accepted: it has expired, or no authority in sslrootcert signed it; renew one of them",
        "fe_sendauth: no password supplied": """
        no password for this role: the password file is missing, can be read by others (chmod 600), has no line for this host, port, \
        database and role, or is known to another process only (PGPASSFILE, ~/.pgpass): name it by passfile= in the store's address
        """,
    ]

    /// Removes `connection to server at "HOST", port PORT failed:`, except for an IP address that the host name was resolved to.
    private static func withoutHost(_ line: String, _ address: String, _ resolved: String?) -> String {
        let parts = line.split(separator: "\"", maxSplits: 2)
        guard parts.count == 3, parts[0] == "connection to server at ", address.contains(parts[1]) || parts[1] == resolved ?? "",
            let end = parts[2].firstRange(of: " failed:")
        else { return line }
        let named = address.contains(parts[1]) ? "" : "\(parts[1]): "
        let found = parts[2].hasPrefix(" (") ? "\(parts[2].dropFirst(2).prefix { $0 != ")" }): " : named
        let reason = parts[2][end.upperBound...].trimmingCharacters(in: .whitespaces)
        return found + (reason.isEmpty ? "it does not answer" : reason)
    }

    var serverVersion: Int32 { table.PQserverVersion(connection) }
    package var backendID: Int32 { table.PQbackendPID(connection) }

    /// Whether no server of a higher timeline is known, which has taken this one's place.
    var isNewest: Bool { timeline == 0 || timeline >= known.timeline(of: systemIdentifier) }

    /// The connection is unusable: it broke, or its server is a former primary.
    package var isLost: Bool { isBroken || !isNewest }

    /// The number of warnings from the server since the connection was opened.
    package var warningCount: Int { warnings.count }

    // MARK: Statements

    /// Queues statements to be sent with the next ones, which saves a round trip. If one fails, the first of the next ones is reported as failed.
    package func precede(by statements: [Statement]) {
        preceding += statements
    }

    /// Removes and returns the statements queued by ``precede(by:)`` that were not sent yet.
    func discardPreceding() -> [Statement] {
        defer { preceding = [] }
        return preceding
    }

    /// Sends all statements in one exchange, and reads their results.
    package func run(_ statements: [Statement]) throws(PostgreSQLError) -> [StatementResult] {
        guard !preceding.isEmpty else { return try exchange(statements) }
        let first = discardPreceding()
        do {
            return Array(try exchange(first + statements).dropFirst(first.count))
        } catch .refused(let state, let statement) {
            throw .refused(state: state, statement: max(0, statement - first.count))
        }
    }

    /// Sends a statement without waiting for its result, which is read before those of later statements. If it fails, the connection is lost.
    ///
    /// - Throws: ``PostgreSQLError/connectionLost``
    func runUnawaited(_ statement: Statement) throws(PostgreSQLError) {
        let count = try send([statement]).sent.count
        unawaited = (unawaited.exchanges + 1, unawaited.sent + count)
        guard table.PQflush(connection) >= 0 else { throw lost() }
    }

    private func exchange(_ statements: [Statement]) throws(PostgreSQLError) -> [StatementResult] {
        let (sent, added) = try send(statements)
        // Of these, the server has prepared the first ones: after a failure it skips the others.
        var preparations = 0
        do {
            try receiveUnawaited()
            let results = try receive(sent, count: statements.count, &preparations)
            answeredCount += 1
            return results
        } catch {
            for sql in added.dropFirst(preparations) { prepared[sql] = nil }
            throw error
        }
    }

    /// - Returns: the statement that each sent message belongs to, and the statements that the server will keep prepared.
    private func send(
        _ statements: [Statement]
    ) throws(PostgreSQLError) -> (sent: [(statement: Int, isPreparation: Bool)], added: [String]) {
        guard !isLost else { throw .connectionLost(wasSilent: wasSilent) }
        var sent: [(statement: Int, isPreparation: Bool)] = []
        var added: [String] = []
        for (index, statement) in statements.enumerated() {
            var name: String?
            if statement.isPrepared {
                if prepared[statement.sql] == nil {
                    preparedCount += 1
                    let new = "s\(preparedCount)"
                    prepared[statement.sql] = new
                    added.append(statement.sql)
                    let types = statement.kinds.map(\.oid)
                    try check(table.PQsendPrepare(connection, new, statement.sql, Int32(types.count), types))
                    sent.append((index, true))
                }
                name = prepared[statement.sql]
            }
            try check(send(statement, name))
            sent.append((index, false))
        }
        try check(table.PQpipelineSync(connection))
        return (sent, added)
    }

    package func run(_ statement: Statement) throws(PostgreSQLError) -> StatementResult {
        try run([statement])[0]
    }

    /// Runs `body` without a limit on the server's silence: for statements that wait for other sessions or scan whole tables.
    package func withoutTimeLimit<Result>(_ body: () throws -> Result) rethrows -> Result {
        let limit = silenceLimit
        silenceLimit = nil
        defer { silenceLimit = limit }
        return try body()
    }

    private func send(_ statement: Statement, _ name: String?) -> Int32 {
        statement.arguments.withPointers { count, values, lengths, formats in
            if let name { return table.PQsendQueryPrepared(connection, name, count, values, lengths, formats, 1) }
            return table.PQsendQueryParams(connection, statement.sql, count, statement.kinds.map(\.oid), values, lengths, formats, 1)
        }
    }

    private func check(_ success: Int32) throws(PostgreSQLError) {
        guard success == 1 else { throw lost() }
    }

    func lost() -> PostgreSQLError {
        isBroken = true
        return .connectionLost(wasSilent: wasSilent)
    }

    private func receiveUnawaited() throws(PostgreSQLError) {
        while unawaited.exchanges > 0 {
            try awaitResult(longestSilence: .zero)
            guard let result = table.PQgetResult(connection) else {
                // The end of the results of one sent message.
                unawaited.sent -= 1
                guard table.PQstatus(connection) == UInt32(CCONNECTION_OK), unawaited.sent >= 0 else { throw lost() }
                continue
            }
            defer { table.PQclear(result) }
            switch Int(table.PQresultStatus(result)) {
            case Int(CPGRES_PIPELINE_SYNC): unawaited.exchanges -= 1
            case Int(CPGRES_COMMAND_OK), Int(CPGRES_TUPLES_OK): break
            // The state of the session is unknown.
            default: throw lost()
            }
        }
    }

    /// - Parameter preparations: the number of statements that the server has prepared.
    private func receive(
        _ sent: [(statement: Int, isPreparation: Bool)], count: Int, _ preparations: inout Int
    ) throws(PostgreSQLError) -> [StatementResult] {
        var results = Array(repeating: StatementResult(), count: count)
        var (index, failure) = (0, PostgreSQLError?.none)
        while true {
            try awaitResult(longestSilence: longestSilence)
            guard let result = table.PQgetResult(connection) else {
                // The end of the results of one sent message.
                index += 1
                guard table.PQstatus(connection) == UInt32(CCONNECTION_OK), index <= sent.count else { throw lost() }
                continue
            }
            defer { table.PQclear(result) }
            switch Int(table.PQresultStatus(result)) {
            case Int(CPGRES_PIPELINE_SYNC):
                if let failure { throw failure }
                return results
            case Int(CPGRES_COMMAND_OK), Int(CPGRES_TUPLES_OK):
                guard index < sent.count else { break }
                if sent[index].isPreparation { preparations += 1 } else { results[sent[index].statement] = read(result) }
            case Int(CPGRES_PIPELINE_ABORTED): break
            default:
                let state = state(of: result)
                guard !state.endsSession else { throw lost() }
                if failure == nil { failure = .refused(state: state, statement: index < sent.count ? sent[index].statement : 0) }
            }
        }
    }

    /// Flushes pending output, and reads until there is a result.
    private func awaitResult(longestSilence: Duration) throws(PostgreSQLError) {
        var isFlushed = false
        while true {
            if !isFlushed {
                let left = table.PQflush(connection)
                guard left >= 0 else { throw lost() }
                isFlushed = left == 0
            }
            guard table.PQisBusy(connection) == 1 else {
                if isFlushed { return }
                // Output of the server must be read while sending, or the server would stop reading.
                try pollOnce(POLLIN | POLLOUT, longestSilence: longestSilence)
                continue
            }
            try pollOnce(isFlushed ? POLLIN : POLLIN | POLLOUT, longestSilence: longestSilence)
        }
    }

    private func pollOnce(_ events: Int32, longestSilence: Duration) throws(PostgreSQLError) {
        let began = ContinuousClock.now
        var deadline = silenceLimit.map { began + $0 }
        while true {
            let end = ContinuousClock.now + Self.lookout
            let until = deadline.map { min($0, end) } ?? end
            if wait(for: Int16(events), until: until) { break }
            // Before its end, the wait has failed.
            guard .now >= until, isNewest else { throw lost() }
            guard let silenceLimit, until == deadline else { continue }
            guard until - began < longestSilence, answersAnotherConnection() else {
                wasSilent = true
                throw lost()
            }
            deadline = .now + silenceLimit
        }
        guard table.PQconsumeInput(connection) == 1 else { throw lost() }
    }

    private func answersAnotherConnection() -> Bool {
        var address = address
        address.silenceLimit = Self.answerLimit
        let other = try? PostgreSQLConnection(to: address, within: Self.answerLimit)
        return (try? other?.run(Statement("SELECT", isPrepared: false))) != nil
    }

    /// Returns false when the deadline has passed or there is no socket.
    private func wait(for events: Int16, until deadline: ContinuousClock.Instant?) -> Bool {
        var descriptor = pollfd(fd: table.PQsocket(connection), events: events, revents: 0)
        guard descriptor.fd >= 0 else { return false }
        while true {
            let count = poll(&descriptor, 1, deadline.map { Self.pollTimeout($0 - .now) } ?? -1)
            if count > 0 { return true }
            guard count < 0, errno == EINTR else { return false }
        }
    }

    /// A time for `poll`, in milliseconds: rounded up, so that it does not end before the deadline.
    static func pollTimeout(_ left: Duration) -> Int32 {
        Int32(min((max(.zero, left) / .milliseconds(1)).rounded(.up), Double(Int32.max)))
    }

    // MARK: Results

    private func state(of result: OpaquePointer) -> SQLState {
        SQLState(description: text(table.PQresultErrorField(result, Int32(CPG_DIAG_SQLSTATE))))
    }

    private func text(_ pointer: UnsafePointer<CChar>?) -> String {
        pointer.map { String(cString: $0) } ?? ""
    }

    private func read(_ result: OpaquePointer) -> StatementResult {
        var read = StatementResult()
        read.tag = text(table.PQcmdStatus(result))
        read.changedCount = Int(text(table.PQcmdTuples(result))) ?? 0
        let (rowCount, columnCount) = (table.PQntuples(result), table.PQnfields(result))
        guard columnCount > 0, rowCount > 0 else { return read }
        let types = (0..<columnCount).map { table.PQftype(result, $0) }
        read.rows.reserveCapacity(Int(rowCount))
        for row in 0..<rowCount {
            read.rows.append(Row((0..<columnCount).map { value(result, row: row, column: $0, type: types[Int($0)]) }))
        }
        return read
    }

    /// The stored value: `bigint`, `text` and `bytea` in binary format. Other types are returned as bytes.
    private func value(_ result: OpaquePointer, row: Int32, column: Int32, type: UInt32) -> Value {
        guard table.PQgetisnull(result, row, column) == 0, let start = table.PQgetvalue(result, row, column) else { return .null }
        let bytes = UnsafeRawBufferPointer(start: start, count: Int(table.PQgetlength(result, row, column)))
        switch type {
        case Statement.Kind.integer.oid where bytes.count == 8:
            return .integer(Int64(bigEndian: bytes.loadUnaligned(as: Int64.self)))
        case Statement.Kind.text.oid: return .text(String(decoding: bytes, as: UTF8.self))
        default: return .bytes(Array(bytes))
        }
    }
}

/// Counts the warnings that a server sends besides results. libpq calls it on the thread that uses the connection.
private final class WarningCounter {
    private(set) var count = 0
    private var library: PostgreSQLLibrary?

    func listen(on connection: OpaquePointer, _ library: PostgreSQLLibrary) {
        self.library = library
        // The connection, which owns this counter, is closed before it is deallocated.
        _ = library.table.pointee.PQsetNoticeReceiver(
            connection,
            { context, result in
                guard let context else { return }
                Unmanaged<WarningCounter>.fromOpaque(context).takeUnretainedValue().note(result)
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    private func note(_ result: OpaquePointer?) {
        let severity = library?.table.pointee.PQresultErrorField(result, Int32(CPG_DIAG_SEVERITY_NONLOCALIZED)).map { String(cString: $0) }
        if severity == "WARNING" { count += 1 }
    }
}
