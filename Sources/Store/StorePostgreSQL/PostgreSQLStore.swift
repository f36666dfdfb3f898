package import Storage
import Synchronization
package import WakuCrypto

/// A ``Store`` in a database of PostgreSQL 15 or later. Several processes may use it at once.
///
/// All waiting commands become one transaction (see ``Writer``) at isolation level read committed. The conditions of the changes detect rows that
/// another process changed between a command's reads and its changes: see ``Mutation/Kind``.
package final class PostgreSQLStore: Store {
    /// The nodes that a store excludes while it is open.
    package enum Access: Sendable {
        /// Excludes no node: for commands that run beside a node.
        case beside
        /// Excludes nodes with exclusive access: for one of several nodes.
        case shared
        /// Excludes all other nodes: for a single node.
        case exclusive
    }

    private static let commandLockLimit = Duration.seconds(10)

    package let sealer: Sealer
    package let address: PostgreSQLAddress
    let schema: Schema
    let queue: PostgreSQLCommitQueue
    let pool: ConnectionPool
    let monitor: StoreMonitor
    let readers = ReaderThreads()
    private let size = Mutex(0)
    let promotions: PromotionWatch?

    /// Opens the database, after creating and migrating its tables if necessary.
    ///
    /// - Parameters:
    ///   - address: an existing database.
    ///   - storageKey: see ``Storage/Sealer/storageKey(of:)``.
    ///   - parts: all parts that have tables in the database.
    ///   - access: the nodes to exclude. Opening fails while another open store excludes this one.
    package convenience init(
        _ address: PostgreSQLAddress, storageKey: SymmetricKey, parts: [StorePart], access: Access = .beside
    ) throws(StoreError) {
        try self.init(address, storageKey: storageKey, parts: parts, access: access, mustExist: false)
    }

    /// Opens an existing database with its tables, with or without a daemon running on it.
    ///
    /// - Parameters:
    ///   - storageKey: nil to open the store without its key: sealed contents can't be opened then.
    ///   - parts: all parts that have tables in the database.
    /// - Throws: `StoreError`
    package convenience init(existing address: PostgreSQLAddress, storageKey: SymmetricKey?, parts: [StorePart]) throws(StoreError) {
        try self.init(address, storageKey: storageKey, parts: parts, access: .beside, mustExist: true)
    }

    private init(
        _ address: PostgreSQLAddress, storageKey: SymmetricKey?, parts: [StorePart], access: Access, mustExist: Bool
    ) throws(StoreError) {
        let (schema, monitor) = (Schema(parts: parts), StoreMonitor(address))
        self.address = address
        self.schema = schema
        self.monitor = monitor
        // A command for an operator says why it does not go on. Shorter than the silence limit, so that the server reports its own first.
        let lockLimit = mustExist ? min(Self.commandLockLimit, address.silenceLimit * 0.75) : .zero
        pool = ConnectionPool(address, isShared: access == .shared, lockLimit: lockLimit)
        queue = PostgreSQLCommitQueue { closing in
            Writer(address, access, closing: closing) { monitor.note($0) }
        }
        do {
            (sealer, promotions) = try queue.runAndWait { writer in
                let connection = try writer.connected()
                let promotions = access == .beside ? nil : PromotionWatch(address, connection)
                if mustExist {
                    _ = try connection.run(Statement(lockLimit: lockLimit))
                    try schema.require(connection, at: address)
                } else {
                    try connection.withoutTimeLimit {
                        try schema.migrate(connection, at: address)
                        try SchemaCheck(schema).verify(connection, at: address)
                    }
                }
                let sealer = try Sealer(storageKey: storageKey ?? SymmetricKey.random(), in: connection)
                if storageKey != nil { try sealer.checkKey(in: connection, at: address, mayWrite: !mustExist) }
                if access != .beside { try writer.begin() }
                return (sealer, promotions)
            }
        } catch {
            throw StoreError(explaining: error, at: address)
        }
        try? queue.runAndWait { writer in
            let connection = try writer.connected()
            // After an error it is undone.
            connection.precede(by: [Statement(lockLimit: .seconds(1))])
            try measure(on: connection)
            _ = try connection.run(Statement(lockLimit: .zero))
        }
    }

    /// - Throws: `StoreError` with `newer` or `unsuitable`
    package func requireNothingAdded() throws(StoreError) {
        do {
            try queue.runAndWait { writer in try schema.requireNothingAdded(writer.connected(), at: address) }
        } catch {
            throw StoreError(explaining: error, at: address)
        }
    }

    // MARK: Commands

    package func submit<Outcome>(
        _ commands: [StoreCommand<Outcome>], completion: @escaping @Sendable ([Result<Outcome, StoreError>]) -> Void
    ) {
        queue.add(CommandBatch(commands, explain: { [address] in StoreError(explaining: $0, at: address) }, completion: completion))
    }

    package func afterCommits(_ body: @escaping @Sendable () -> Void) {
        if queue.isIdle { return body() }
        submit([StoreCommand<Void>]()) { _ in body() }
    }

    package func paceCommits(_ interval: Duration) {
        queue.pace(interval)
    }

    // MARK: Reading

    package func onReader(_ body: @escaping @Sendable () -> Void) {
        readers.run(body)
    }

    package func readEach<Outcome>(_ commands: [StoreCommand<Outcome>]) throws(StoreError) -> [Result<Outcome, StoreError>] {
        var (failures, isGrouping) = ([Int: any Error](), true)
        while true {
            do {
                let steps = try pool.read { try Self.decide(commands, without: failures, on: $0, isGrouping: isGrouping) }
                return steps.enumerated().map { index, steps in
                    switch steps.state {
                    case .decided(let changes, let outcome) where changes.isEmpty: return .success(outcome([]))
                    case .failed(let error): return .failure(monitor.readFailed(failures[index] ?? error))
                    case .decided, .reading:
                        return .failure(StoreError(code: .unavailable, message: "a command to be read changes rows"))
                    }
                }
            } catch let failure as ReadFailure {
                // The server ended the snapshot: the remaining reads use another one.
                failures[failure.command] = failure.error
            } catch is StatementGroups.Refused {
                isGrouping = false
            } catch {
                throw monitor.readFailed(error)
            }
        }
    }

    private struct ReadFailure: Error {
        let command: Int
        let error: any Error
    }

    private static func decide<Outcome>(
        _ commands: [StoreCommand<Outcome>], without failures: [Int: any Error], on connection: PostgreSQLConnection, isGrouping: Bool
    ) throws -> [CommandSteps<Outcome>] {
        var steps = commands.map { CommandSteps($0) }
        for (index, error) in failures { steps[index].fail(error) }
        while true {
            var (statements, owners) = ([Statement](), [Int]())
            for (index, steps) in steps.enumerated() {
                guard case .reading(let wanted) = steps.state else { continue }
                statements += wanted
                owners += Array(repeating: index, count: wanted.count)
            }
            if statements.isEmpty { return steps }
            let groups = StatementGroups(statements, isGrouping: isGrouping)
            let sent: [StatementResult]
            do {
                sent = try connection.run(groups.statements)
            } catch {
                guard case .refused(let state, let statement) = error, state.concernsStatement else { throw error }
                guard groups.members[statement].count == 1 else { throw StatementGroups.Refused() }
                throw ReadFailure(command: owners[groups.members[statement][0]], error: error)
            }
            var found = try groups.results(sent)[...]
            for index in steps.indices {
                guard case .reading(let wanted) = steps[index].state else { continue }
                steps[index].take(found.prefix(wanted.count))
                found = found.dropFirst(wanted.count)
            }
        }
    }

    package func scan(_ read: Read, _ visit: (Row) throws -> Bool) throws(StoreError) {
        do {
            try pool.read { try $0.scan(read, visit) }
        } catch let failure as VisitFailure {
            throw monitor.readFailed(failure.error)
        } catch {
            throw monitor.readFailed(error)
        }
    }

    // MARK: Maintenance

    /// The size of the program's tables and their indexes in bytes, as last measured.
    package var byteCount: Int { size.withLock { $0 } }

    func measure() throws {
        do {
            try pool.read { connection in
                connection.precede(by: [Statement("SET LOCAL lock_timeout = '1s'", isPrepared: false)])
                try measure(on: connection)
            }
        } catch PostgreSQLError.refused(let state, _) where state.isLockTimeout {
            // A session that changes a table holds it for as long as it likes: the former size stays.
        }
    }

    private func measure(on connection: PostgreSQLConnection) throws {
        let sum = Statement(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c "
                + "WHERE c.relkind = 'r' AND c.relnamespace = quote_ident(current_schema())::regnamespace")
        guard let row = try connection.run(sum).rows.first else { throw UnexpectedValue() }
        let bytes = Int(try row.integer(0))
        size.withLock { $0 = bytes }
    }

    /// Completes waiting commands, and closes the connections.
    package func close() throws {
        queue.finish()
        pool.close()
    }
}

/// An error thrown by `visit`, which says nothing about the connection.
struct VisitFailure: Error {
    let error: any Error
}

/// The number of rows that a scan fetches at once, so that few large rows are in memory: it doubles after small pages.
struct ScanPage {
    private static let first = 16
    private static let largest = 512
    /// Of rows with encrypted content that may have 2 MiB each: small rows do not tell how large the next ones are.
    private static let largestOfContents = 32
    private static let smallByteCount = 1 << 20

    private let limit: Int
    private(set) var rowCount = Self.first

    init(of query: Query) {
        let hasLargeContents = query.table.sealed.map { !$0.isSmall && query.outputs.contains(.column($0.column)) } ?? false
        limit = hasLargeContents ? Self.largestOfContents : Self.largest
    }

    /// - Parameter byteCount: the size of the last page.
    mutating func fetched(_ byteCount: Int) {
        rowCount = byteCount < Self.smallByteCount ? min(rowCount * 2, limit) : Self.first
    }
}

extension PostgreSQLConnection {
    /// Scans inside an open transaction.
    fileprivate func scan(_ read: Read, _ visit: (Row) throws -> Bool) throws {
        let query = try read.statement()
        var declaration = Statement("DECLARE rows NO SCROLL CURSOR FOR " + query.sql, isPrepared: false)
        (declaration.kinds, declaration.arguments) = (query.kinds, query.arguments)
        _ = try run(declaration)
        var page = ScanPage(of: read.query)
        while true {
            let rows = try run(Statement("FETCH FORWARD \(page.rowCount) FROM rows", isPrepared: false)).rows
            var byteCount = 0
            for row in rows {
                for case .bytes(let bytes) in row.values { byteCount += bytes.count }
                do {
                    guard try visit(row) else { return }
                } catch {
                    throw VisitFailure(error: error)
                }
            }
            if rows.count < page.rowCount { return }
            page.fetched(byteCount)
        }
    }
}
