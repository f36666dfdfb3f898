/// The tables of a protocol, or of another part of the node, and how older databases become newer ones.
package struct StorePart: Sendable {
    package enum Step: Sendable {
        case create(Table)
        /// Null in the rows that there are: the column must be optional.
        case addColumn(Column, to: Table)
        case createIndex(Index, on: Table)
        case drop(table: String)
    }

    /// In the names of its migrations: never changed.
    package let name: String
    /// As they are after the last migration.
    package let tables: [Table]
    /// A database has the first ones up to some number. New ones are added at the end; those that were released are never changed.
    package let migrations: [[Step]]

    package init(_ name: String, tables: [Table], migrations: [[Step]]? = nil) {
        self.name = name
        self.tables = tables
        self.migrations = migrations ?? [tables.map(Step.create)]
    }
}
