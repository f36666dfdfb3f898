/// The tables of a protocol, or of another part of the node, and how older databases become newer ones.
package struct StorePart: Sendable {
    package enum Step: Sendable {
        case create(Table)
        /// Null in the rows that there are: the column must be optional.
        case addColumn(Column, to: Table)
        case createIndex(Index, on: Table)
        case drop(table: String)
    }

    /// A change of the tables: one that adds, or one that finishes what earlier ones prepared.
    ///
    /// A database may be shared by nodes of two releases. So a new release only adds: tables, indexes, and columns that are null where an older
    /// release wrote the row. What only older releases need goes by a migration of its own that **finishes**, and no later one that adds may need
    /// it: in a database that several nodes can share it is applied by `admin migrate --finish`, when no older node is left, and older releases
    /// refuse the database from then on. Elsewhere, and in new databases, all are applied in their order.
    package struct Migration: Sendable, ExpressibleByArrayLiteral {
        package let steps: [Step]
        package let finishes: Bool

        package init(_ steps: [Step], finishes: Bool = false) {
            self.steps = steps
            self.finishes = finishes
        }

        package init(arrayLiteral steps: Step...) {
            self.init(steps)
        }
    }

    /// In the names of its migrations: never changed.
    package let name: String
    /// As they are after the last migration.
    package let tables: [Table]
    /// A database has the first ones up to some number. New ones are added at the end; those that were released are never changed.
    package let migrations: [Migration]

    package init(_ name: String, tables: [Table], migrations: [Migration]? = nil) {
        self.name = name
        self.tables = tables
        self.migrations = migrations ?? [Migration(tables.map(Step.create))]
    }
}
