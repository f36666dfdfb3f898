/// The shape of a query, declared once; a ``Read`` adds the arguments.
public final class Query: Sendable {
    /// A value of each row that a query returns.
    public enum Output: Hashable, Sendable {
        case column(Column)
        case isPresent(Column)
        case byteCount(Column)
        /// The column's bytes if they are at most this many, otherwise null.
        case small(Column, byteLimit: Int)
        /// The number of rows that meet the conditions: one result row, or one for each value of `Query.group`.
        case count
        case distinctCount(Column)
        case minimum(Column)
        case maximum(Column)
    }

    /// The order of the rows.
    public enum Order: Hashable, Sendable {
        case ascending(Column)
        case descending(Column)
        /// Ascending by the output with this index in `Query.outputs`, which may be computed.
        case output(Int)
    }

    package let table: Table
    package let outputs: [Output]
    package let conditions: [Condition]
    package let order: [Order]
    package let group: Column?
    package let isDistinct: Bool
    /// The index to use, for queries that engines would otherwise plan badly.
    package let index: String?
    package let text = StatementText()
    package let textForOneID = StatementText()

    public init(
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

    public convenience init(_ table: Table, _ columns: [Column], where conditions: [Condition] = [], order: [Order] = []) {
        self.init(table, columns.map(Output.column), where: conditions, order: order)
    }

    /// - Parameters:
    ///   - arguments: one for each condition that takes one, in the order of the conditions. Those that are left out are null.
    ///   - ids: the ids of a ``Condition/among(_:)``.
    ///   - limit: the maximum number of rows; nil for all.
    ///   - offset: the number of rows to skip.
    public func callAsFunction(_ arguments: Value..., ids: [Int64] = [], limit: Int? = nil, offset: Int = 0) -> Read {
        Read(query: self, arguments: arguments, ids: ids, limit: limit, offset: offset)
    }

    /// - Parameters:
    ///   - arguments: as in ``callAsFunction(_:ids:limit:offset:)``.
    ///   - ids: the ids of a ``Condition/among(_:)``.
    ///   - limit: the maximum number of rows; nil for all.
    ///   - offset: the number of rows to skip.
    package func read(_ arguments: [Value], ids: [Int64] = [], limit: Int? = nil, offset: Int = 0) -> Read {
        Read(query: self, arguments: arguments, ids: ids, limit: limit, offset: offset)
    }
}

/// A condition on a row. Rows must meet all conditions of a list.
public enum Condition: Hashable, Sendable {
    /// Takes an argument. No row meets it if the argument is null: see ``absent(_:)``.
    case equal(Column)
    /// As ``equal(_:)``, with a value that the statement names: an index of the rows that have it is enough to count them.
    case hasValue(Column, Int64)
    case present(Column)
    case absent(Column)
    /// Takes an argument.
    case less(Column)
    /// Takes an argument.
    case atLeast(Column)
    /// Takes two arguments, the lowest and the highest value.
    case between(Column)
    /// Takes an argument: the prefix of the column's bytes.
    case hasPrefix(Column)
    /// The integer column has one of the ids of the read or change. At most one such condition per list.
    case among(Column)

    /// The row id is among those that are passed as arguments.
    public static var idAmong: Condition { .among(.id) }
}

/// A ``Query`` with its arguments. A command names its reads before it decides anything.
public struct Read: Sendable {
    package let query: Query
    package let arguments: [Value]
    package let ids: [Int64]
    package let limit: Int?
    package let offset: Int
    /// The expected size of the rows, if they are large: engines hold few such rows at once.
    package var expectedByteCount = 0
}
