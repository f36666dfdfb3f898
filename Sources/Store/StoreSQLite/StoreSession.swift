import GRDB
import GRDBSQLite
import Storage

/// Executes commands on a connection, inside a transaction.
struct StoreSession {
    /// The rows that a command's changes depend on differ from those it read.
    struct Conflict: Error {}

    private static let attemptLimit = 3

    let db: Database

    // MARK: Commands

    /// - Throws: ``Conflict`` when a command met a conflict after it had changed rows: the transaction must be rolled back.
    func perform<Outcome>(_ command: StoreCommand<Outcome>) throws -> Outcome {
        for _ in 1..<Self.attemptLimit {
            if let outcome = try attempt(command) { return outcome }
        }
        guard let outcome = try attempt(command) else { throw Conflict() }
        return outcome
    }

    /// Returns nil when the first change met a conflict; nothing was changed then.
    private func attempt<Outcome>(_ command: StoreCommand<Outcome>) throws -> Outcome? {
        let (changes, outcome) = try decide(command)
        var inserted: [Int64] = []
        var isFirst = true
        for change in changes {
            do {
                try apply(change, &inserted)
            } catch let conflict as Conflict {
                guard isFirst else { throw conflict }
                return nil
            }
            isFirst = false
        }
        return outcome(inserted)
    }

    /// The command's changes, decided from the rows stored now.
    func decide<Outcome>(_ command: StoreCommand<Outcome>) throws -> ([Change], ([Int64]) -> Outcome) {
        var command = command
        while true {
            switch command {
            case .apply(let changes, let outcome): return (changes, outcome)
            case .read(let reads, let next): command = try next(reads.map(rows))
            }
        }
    }

    // MARK: Rows

    func rows(_ read: Read) throws -> [Row] {
        var rows: [Row] = []
        try scan(read) { row in
            rows.append(row)
            return true
        }
        return rows
    }

    func scan(_ read: Read, _ visit: (Row) throws -> Bool) throws {
        let statement = try HotStatement(read.sql, db)
        var next = bind(read.query.conditions, read.arguments, after: 0, read.ids, to: statement)
        statement.bind(next, Int64(read.limit ?? -1))
        next += 1
        statement.bind(next, Int64(read.offset))
        let count = Int32(read.query.outputs.count)
        while try statement.next() {
            var values: [Value] = []
            values.reserveCapacity(Int(count))
            var column: Int32 = 0
            while column < count {
                values.append(statement.value(column))
                column += 1
            }
            guard try visit(Row(values)) else { return }
        }
    }

    // MARK: Changes

    private func apply(_ change: Change, _ inserted: inout [Int64]) throws {
        let mutation = change.mutation
        let statement = try HotStatement(change.sql, db)
        let (conditions, columnCount): ([Condition], Int)
        switch mutation.kind {
        case .insert(let columns), .insertOrIgnore(let columns), .upsert(let columns): (conditions, columnCount) = ([], columns.count)
        case .update(let columns, let met), .updateAny(let columns, let met): (conditions, columnCount) = (met, columns.count)
        case .delete(let met): (conditions, columnCount) = (met, 0)
        }
        var index = 0
        while index < columnCount, index < change.arguments.count {
            statement.bind(Int32(index + 1), change.arguments[index])
            index += 1
        }
        _ = bind(conditions, change.arguments, after: columnCount, change.ids, to: statement)
        do {
            try statement.run()
        } catch let error as DatabaseError where error.isDuplicate {
            throw Conflict()
        }
        if mutation.isInsert {
            inserted.append(db.lastInsertedRowID)
        } else if mutation.isConditional, db.changesCount == 0 {
            throw Conflict()
        }
    }

    /// Binds the arguments of conditions. Loops by index: iterators of slices cost more than the binding.
    ///
    /// - Parameters:
    ///   - conditions: in the order of the statement's text.
    ///   - arguments: all arguments of the statement: those bound already, then those of the conditions.
    ///   - count: the number of arguments that are bound already, to the first parameters.
    ///   - ids: the ids for ``Storage/Condition/among(_:)``.
    /// - Returns: the number of the next parameter.
    private func bind(
        _ conditions: [Condition], _ arguments: [Value], after count: Int, _ ids: [Int64], to statement: borrowing HotStatement
    ) -> Int32 {
        var (number, argument) = (Int32(count + 1), count)
        for condition in conditions {
            var left: Int
            switch condition {
            case .hasValue, .present, .absent: left = 0
            case .between: left = 2
            case .equal, .less, .atLeast, .hasPrefix: left = 1
            case .among:
                if ids.count == 1 {
                    statement.bind(number, ids[0])
                } else {
                    statement.bind(number, .text("[" + ids.map(String.init).joined(separator: ",") + "]"))
                }
                number += 1
                left = 0
            }
            while left > 0 {
                statement.bind(number, argument < arguments.count ? arguments[argument] : .null)
                number += 1
                argument += 1
                left -= 1
            }
        }
        return number
    }
}

extension DatabaseError {
    /// Whether a row with the same unique columns or the same id exists.
    fileprivate var isDuplicate: Bool {
        [.SQLITE_CONSTRAINT_UNIQUE, .SQLITE_CONSTRAINT_PRIMARYKEY, .SQLITE_CONSTRAINT_ROWID].contains(extendedResultCode)
    }
}
