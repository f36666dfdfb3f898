/// The shape of a change of rows, declared once; a ``Change`` adds the arguments.
public final class Mutation: Sendable {
    /// The effect of a mutation on the rows of its table.
    public enum Kind: Sendable {
        /// Inserts a row with these columns; the others are null. It is a conflict if a row with the same unique columns exists: the command runs
        /// again.
        case insert([Column])
        /// Inserts a row unless one with the same unique columns exists.
        case insertOrIgnore([Column])
        /// Replaces these columns of an existing row, or inserts a row if there is none. The row is found by its id if the id is among the columns,
        /// otherwise by the unique columns.
        case upsert([Column])
        /// Updates the rows that meet the conditions. It is a conflict if there are none: the command runs again.
        case update([Column], where: [Condition])
        /// Updates the rows that meet the conditions, of which there may be none.
        case updateAny([Column], where: [Condition])
        case delete(where: [Condition])
    }

    package let table: Table
    package let kind: Kind
    package let text = StatementText()
    package let textForOneID = StatementText()

    /// A mutation, to be declared once as a static value.
    public init(_ table: Table, _ kind: Kind) {
        self.table = table
        self.kind = kind
    }

    /// - Parameters:
    ///   - arguments: one for each column, then one for each condition that takes one. Those that are left out are null.
    ///   - ids: the ids of a ``Condition/among(_:)``.
    public func callAsFunction(_ arguments: Value..., ids: [Int64] = []) -> Change {
        Change(mutation: self, arguments: arguments, ids: ids)
    }

    /// - Parameters:
    ///   - arguments: as in ``callAsFunction(_:ids:)``.
    ///   - ids: the ids of a ``Condition/among(_:)``.
    package func change(_ arguments: [Value], ids: [Int64] = []) -> Change {
        Change(mutation: self, arguments: arguments, ids: ids)
    }

    /// Whether the change can meet a conflict, after which the command runs again from the beginning.
    package var isConditional: Bool {
        switch kind {
        case .insert, .update: true
        case .insertOrIgnore, .upsert, .updateAny, .delete: false
        }
    }

    package var isInsert: Bool {
        if case .insert = kind { true } else { false }
    }
}

/// A ``Mutation`` with its arguments.
public struct Change: Sendable {
    package let mutation: Mutation
    package let arguments: [Value]
    package let ids: [Int64]
}
