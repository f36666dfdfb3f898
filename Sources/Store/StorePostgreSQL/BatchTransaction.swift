import Storage

/// A command that waits to be committed. Used only on the writer's thread.
final class PendingCommand {
    /// The changes of a command, and the reads that they depend on.
    struct Decision {
        let steps: CommandSteps<Void>
        let reads: [Footprint]
        let changes: [Footprint]
        let statements: [Statement]
        /// Whether it was decided before the transaction changed anything, so that another transaction can use it too.
        let isEarly: Bool
    }

    private let batch: any CommitBatch
    private let index: Int
    fileprivate(set) var decision: Decision?
    /// Ids of the rows that it inserted in the current transaction.
    fileprivate(set) var inserted: [Int64] = []
    var conflictCount = 0

    init(_ batch: any CommitBatch, _ index: Int) {
        self.batch = batch
        self.index = index
    }

    fileprivate var command: StoreCommand<Void> { batch.command(index) }

    /// The error that a step threw.
    var failure: (any Error)? {
        if case .failed(let error)? = decision?.steps.state { error } else { nil }
    }

    /// Called after the transaction was committed.
    func complete() {
        switch decision?.steps.state {
        case .decided(_, let outcome): outcome(inserted)
        case .failed(let error): fail(error)
        case .reading, nil: break
        }
    }

    func fail(_ error: any Error) {
        batch.fail(index, error)
    }

    /// Called before another transaction.
    func reset(keepingDecision: Bool) {
        inserted = []
        if !keepingDecision || decision?.isEarly == false { decision = nil }
    }
}

/// Executes commands in the order of submission, each as if it saw the changes of earlier ones, in few round trips.
///
///     ┌▶ decide: the reads of a window of commands, in one exchange ◀──────────────────┐
///     └── more reads                                                                   │
///     apply: the first commands' changes, up to one that read rows that they change ───┘
///
/// Changes are sent in the same exchange as the reads of the next commands. A decision stays valid until rows that it depends on are changed.
struct BatchTransaction {
    /// A command can't be executed as it was decided. The transaction must be rolled back.
    struct Failure: Error {
        let command: ObjectIdentifier
        /// nil for a conflict: rows have changed since the command read them.
        let error: (any Error)?
    }

    private struct Outgoing {
        let statement: Statement
        /// nil for a statement that belongs to no single command.
        let command: PendingCommand?
        let mutation: Mutation?
    }

    private static let windowSize = 256

    private let connection: PostgreSQLConnection
    private let isGrouping: Bool
    private var outgoing: [Outgoing]
    private var hasChanged = false

    /// - Parameters:
    ///   - connection: a connection without an open transaction.
    ///   - beginning: statements that begin the transaction. If an UPDATE among them changes no row, another node has taken over the database.
    ///   - isGrouping: see ``StatementGroups``.
    init(_ connection: PostgreSQLConnection, beginning: [Statement], isGrouping: Bool) {
        self.connection = connection
        self.isGrouping = isGrouping
        outgoing = beginning.map { Outgoing(statement: $0, command: nil, mutation: nil) }
    }

    /// Leaves the transaction open.
    ///
    /// - Throws: ``Failure``, ``StatementGroups/Refused``, ``PostgreSQLError``
    mutating func run(_ commands: [PendingCommand]) throws {
        var rest = commands[...]
        var size = Self.windowSize
        while !rest.isEmpty {
            let window = rest.prefix(size)
            try decide(window)
            let count = independentCount(window)
            apply(window.prefix(count))
            rest = rest.dropFirst(count)
            // When commands depend on each other, the reads of a large window would mostly have to be repeated.
            size = min(2 * count, Self.windowSize)
            // A decision outside the next window would not be compared with the next changes.
            for command in window.dropFirst(count + size) { command.decision = nil }
        }
        _ = try exchange([])
    }

    // MARK: Deciding

    private mutating func decide(_ window: ArraySlice<PendingCommand>) throws {
        var open = window.filter { $0.decision == nil }.map { ($0, CommandSteps($0.command)) }
        while true {
            var (reading, waiting) = ([(PendingCommand, CommandSteps<Void>)](), [(PendingCommand, CommandSteps<Void>)]())
            var (reads, room) = ([Outgoing](), ExchangeRoom())
            for (command, steps) in open {
                guard case .reading(let statements) = steps.state else {
                    command.decision = decision(steps)
                    continue
                }
                guard room.admits(steps.expectedByteCount) else {
                    waiting.append((command, steps))
                    continue
                }
                reading.append((command, steps))
                reads += statements.map { Outgoing(statement: $0, command: command, mutation: nil) }
            }
            if reading.isEmpty { return }
            var found = try exchange(reads)[...]
            let further = reading.map { command, steps in
                guard case .reading(let statements) = steps.state else { return (command, steps) }
                var steps = steps
                steps.take(found.prefix(statements.count))
                found = found.dropFirst(statements.count)
                return (command, steps)
            }
            open = further + waiting
        }
    }

    private func decision(_ steps: CommandSteps<Void>) -> PendingCommand.Decision {
        var steps = steps
        var (footprints, statements) = ([Footprint](), [Statement]())
        if case .decided(let changes, _) = steps.state {
            do {
                statements = try changes.map { try $0.statement() }
                footprints = changes.map { Footprint($0, steps.facts) }
            } catch {
                steps.fail(error)
            }
        }
        return PendingCommand.Decision(
            steps: steps, reads: steps.reads.map(Footprint.init), changes: footprints, statements: statements, isEarly: !hasChanged)
    }

    /// The number of commands, from the first, that read nothing that earlier ones change. Discards the decisions of later commands that read such
    /// rows.
    private func independentCount(_ window: ArraySlice<PendingCommand>) -> Int {
        var changed: [String: [Footprint]] = [:]
        var count: Int?
        for (position, command) in window.enumerated() {
            guard let decision = command.decision else { continue }
            let isStale = decision.reads.contains { read in changed[read.table]?.contains { $0.mayMeet(read) } ?? false }
            if isStale {
                command.decision = nil
                if count == nil { count = position }
            } else if count == nil {
                for footprint in decision.changes { changed[footprint.table, default: []].append(footprint) }
            }
        }
        return count ?? window.count
    }

    // MARK: Changing

    private mutating func apply(_ commands: ArraySlice<PendingCommand>) {
        var changes: [Outgoing] = []
        var ordered: [(key: [[UInt8]], change: Outgoing)] = []
        for command in commands {
            guard let decision = command.decision, case .decided(let decided, _) = decision.steps.state else { continue }
            for (change, statement) in zip(decided, decision.statements) {
                let outgoing = Outgoing(statement: statement, command: command, mutation: change.mutation)
                if let key = change.orderKey { ordered.append((key, outgoing)) } else { changes.append(outgoing) }
            }
        }
        guard !changes.isEmpty || !ordered.isEmpty else { return }
        ordered.sort { left, right in left.key.lexicographicallyPrecedes(right.key) { $0.lexicographicallyPrecedes($1) } }
        // While the transaction waits for another one at an ordered insert, no row of this window is locked.
        outgoing += ordered.map(\.change) + locks(commands) + changes
        hasChanged = true
    }

    /// Locks rows in the order of tables and ids first, so that two transactions that change several of the same rows do not deadlock.
    private func locks(_ commands: ArraySlice<PendingCommand>) -> [Outgoing] {
        var ids: [String: [Int64]] = [:]
        for case .decided(let changes, _)? in commands.map(\.decision?.steps.state) {
            for change in changes {
                guard change.mutation.conditions.first == .equal(.id),
                    change.mutation.columns.count < change.arguments.count,
                    case .integer(let id) = change.arguments[change.mutation.columns.count]
                else { continue }
                ids[change.mutation.table.quoted, default: []].append(id)
            }
        }
        guard ids.values.reduce(0, { $0 + $1.count }) > 1 else { return [] }
        return ids.sorted { $0.key < $1.key }.map { table, ids in
            var statement = Statement("SELECT FROM \(table) WHERE id = ANY($1) ORDER BY id FOR UPDATE")
            statement.add(ids)
            return Outgoing(statement: statement, command: nil, mutation: nil)
        }
    }

    // MARK: Exchanging

    /// Sends the pending changes and these reads, and returns the rows.
    private mutating func exchange(_ reads: [Outgoing]) throws -> [StatementResult] {
        let all = outgoing + reads
        let groups = StatementGroups(all.map(\.statement), isGrouping: isGrouping)
        let sent: [StatementResult]
        do {
            sent = try connection.run(groups.statements)
        } catch {
            guard case .refused(let state, let statement) = error, let command = all[groups.members[statement][0]].command,
                state.isConflict || state.concernsStatement
            else { throw error }
            guard groups.members[statement].count == 1 else { throw StatementGroups.Refused() }
            throw Failure(command: ObjectIdentifier(command), error: state.isConflict ? nil : error)
        }
        let results = try groups.results(sent)
        for (sent, result) in zip(outgoing, results) {
            if let command = sent.command, let mutation = sent.mutation { try check(result, of: mutation, command) }
            if sent.command == nil, result.tag == "UPDATE 0" { throw Superseded() }
        }
        defer { outgoing = [] }
        return Array(results.dropFirst(outgoing.count))
    }

    private func check(_ result: StatementResult, of mutation: Mutation, _ command: PendingCommand) throws {
        if mutation.isInsert {
            guard let row = result.rows.first else { throw Failure(command: ObjectIdentifier(command), error: nil) }
            command.inserted.append(try row.integer(0))
        } else if mutation.isConditional, result.changedCount == 0 {
            throw Failure(command: ObjectIdentifier(command), error: nil)
        }
    }
}

extension Change {
    /// The sort key of an insert into a table with ``Storage/Table/ordersInserts``; nil for other changes.
    fileprivate var orderKey: [[UInt8]]? {
        guard mutation.table.ordersInserts, mutation.isInsert else { return nil }
        return zip(mutation.columns, arguments).compactMap { column, value in
            guard mutation.table.uniqueColumns.contains(column) else { return nil }
            return switch value {
            case .null: []
            case .integer(let integer): withUnsafeBytes(of: (UInt64(bitPattern: integer) ^ 1 << 63).bigEndian, Array.init)
            case .text(let text): Array(text.utf8)
            case .bytes(let bytes): bytes
            }
        }
    }
}

/// The room for the rows that the commands of one exchange read: they are in memory until they are decided, and the server ends a transaction that waits
/// for long.
struct ExchangeRoom {
    static let limit = 8 << 20

    private var left: Int?

    /// The first command is always admitted.
    mutating func admits(_ expectedByteCount: Int) -> Bool {
        guard expectedByteCount <= left ?? expectedByteCount else { return false }
        left = max(0, (left ?? Self.limit) - expectedByteCount)
        return true
    }
}

/// Another node has taken over the database.
struct Superseded: Error {}
