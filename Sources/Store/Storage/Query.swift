/// Rows to look for, as a shape that is declared once; a ``Read`` has the arguments.
package final class Query: Sendable {
    package enum Output: Hashable, Sendable {
        case column(Column)
        case isPresent(Column)
        case byteCount(Column)
        /// Of all rows that meet the conditions: then there is one row, or one for each value of ``Query/group``.
        case count
        case distinctCount(Column)
        case minimum(Column)
        case maximum(Column)
    }

    package enum Order: Hashable, Sendable {
        case ascending(Column)
        case descending(Column)
        /// Ascending by one of ``Query/outputs``, which may be computed: its index.
        case output(Int)
    }

    package let table: Table
    package let outputs: [Output]
    package let conditions: [Condition]
    package let order: [Order]
    package let group: Column?
    package let isDistinct: Bool
    /// The index to use, where engines choose badly.
    package let index: String?
    package let text = StatementText()

    package init(
        _ table: Table, _ outputs: [Output], where conditions: [Condition] = [], order: [Order] = [], group: Column? = nil,
        isDistinct: Bool = false, index: String? = nil
    ) {
        self.table = table
        self.outputs = outputs
        self.conditions = conditions
        self.order = order
        self.group = group
        self.isDistinct = isDistinct
        self.index = index
    }

    package convenience init(_ table: Table, _ columns: [Column], where conditions: [Condition] = [], order: [Order] = []) {
        self.init(table, columns.map(Output.column), where: conditions, order: order)
    }

    /// - Parameters:
    ///   - arguments: one for each condition that takes one, in the order of the conditions.
    ///   - ids: for ``Condition/among(_:)``.
    ///   - limit: rows at most; nil: all.
    ///   - offset: rows to leave out first.
    package func callAsFunction(_ arguments: Value..., ids: [Int64] = [], limit: Int? = nil, offset: Int = 0) -> Read {
        Read(query: self, arguments: arguments, ids: ids, limit: limit, offset: offset)
    }

    /// - Parameters:
    ///   - arguments: as in ``callAsFunction(_:ids:limit:offset:)``.
    ///   - ids: for ``Condition/among(_:)``.
    ///   - limit: rows at most; nil: all.
    ///   - offset: rows to leave out first.
    package func read(_ arguments: [Value], ids: [Int64] = [], limit: Int? = nil, offset: Int = 0) -> Read {
        Read(query: self, arguments: arguments, ids: ids, limit: limit, offset: offset)
    }
}

/// What rows must meet: all conditions of a list.
package enum Condition: Hashable, Sendable {
    /// Takes an argument. Null equals nothing: see ``absent(_:)``.
    case equal(Column)
    case present(Column)
    case absent(Column)
    /// Takes an argument.
    case less(Column)
    /// Takes an argument.
    case atLeast(Column)
    /// Takes two arguments: the first and the last value.
    case between(Column)
    /// Takes an argument: the bytes that the column's begin with.
    case hasPrefix(Column)
    /// Takes the ids of the read or change: the column, an integer's, has one of them. A list has one of these at most.
    case among(Column)

    package static var idAmong: Condition { .among(.id) }
}

/// Rows that a command names before anything is decided.
package struct Read: Sendable {
    package let query: Query
    package let arguments: [Value]
    package let ids: [Int64]
    package let limit: Int?
    package let offset: Int
}
