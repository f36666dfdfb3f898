/// A change of rows, as a shape that is declared once; a ``Change`` has the arguments.
package final class Mutation: Sendable {
    package enum Kind: Sendable {
        /// A new row with these columns; the others are null. A row with the same unique columns is a conflict: the command is decided again.
        case insert([Column])
        /// Nothing changes when there is a row with the same unique columns.
        case insertOrIgnore([Column])
        /// Replaces these columns of the row with the same id, if that is one of them, or else with the same unique columns; inserts a row
        /// if there is none.
        case upsert([Column])
        /// When no row meets the conditions, that is a conflict: the command is decided again.
        case update([Column], where: [Condition])
        /// Rows that meet the conditions, if there are any.
        case updateAny([Column], where: [Condition])
        case delete(where: [Condition])
    }

    package let table: Table
    package let kind: Kind
    package let text = StatementText()

    package init(_ table: Table, _ kind: Kind) {
        self.table = table
        self.kind = kind
    }

    /// - Parameters:
    ///   - arguments: one for each column, then one for each condition that takes one.
    ///   - ids: for ``Condition/among(_:)``.
    package func callAsFunction(_ arguments: Value..., ids: [Int64] = []) -> Change {
        Change(mutation: self, arguments: arguments, ids: ids)
    }

    /// - Parameters:
    ///   - arguments: as in ``callAsFunction(_:ids:)``.
    ///   - ids: for ``Condition/among(_:)``.
    package func change(_ arguments: [Value], ids: [Int64] = []) -> Change {
        Change(mutation: self, arguments: arguments, ids: ids)
    }

    /// What was read must not have changed meanwhile: otherwise the command is decided again.
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

/// A change that a command asks for.
package struct Change: Sendable {
    package let mutation: Mutation
    package let arguments: [Value]
    package let ids: [Int64]
}
