/// The tables of a protocol or another part of the node, and the migrations of older databases.
public struct StorePart: Sendable {
    /// A step of a migration.
    public enum Step: Sendable {
        case create(Table)
        /// Adds a column. It must be optional, because existing rows have null in it.
        case addColumn(Column, to: Table)
        case createIndex(Index, on: Table)
        /// Ids of deleted rows are not assigned again from now on. The table has the same columns and indexes as before; its rows stay.
        case neverReuseIDs(of: Table)
        case drop(table: String)
    }

    /// A schema change: either additive, or one that **finishes** earlier changes.
    ///
    /// Nodes of two releases may share a database, so a new release only adds: tables, indexes, and columns that are null in rows written by older
    /// releases. Removing schema that only older releases need is a separate migration that **finishes**, and no later additive migration may depend
    /// on it. In a database that several nodes can share, `admin migrate --finish` applies it when no older node is left; older releases then refuse
    /// the database. In other databases and in new ones, all migrations are applied in order.
    public struct Migration: Sendable, ExpressibleByArrayLiteral {
        package let steps: [Step]
        package let finishes: Bool

        package init(_ steps: [Step], finishes: Bool = false) {
            self.steps = steps
            self.finishes = finishes
        }

        /// A migration of these steps, in their order.
        public init(arrayLiteral steps: Step...) {
            self.init(steps)
        }
    }

    /// Prefix of the identifiers of its migrations: must never change.
    package let name: String
    /// The tables after the last migration.
    package let tables: [Table]
    /// In order; a database has applied the first N of them. New ones are appended, and released ones never change.
    package let migrations: [Migration]

    public init(_ name: String, tables: [Table], migrations: [Migration]? = nil) {
        self.name = name
        self.tables = tables
        self.migrations = migrations ?? [Migration(tables.map(Step.create))]
    }
}

extension [StorePart] {
    /// - Parameters:
    ///   - applied: the identifiers of a database's migrations: the name of a part, a space and a number.
    ///   - place: the database in the message.
    /// - Throws: ``StoreError`` with `unsuitable` when another part has tables in the database.
    package func requireAll(of applied: some Sequence<String>, in place: String) throws(StoreError) {
        let found = Set(applied.map { $0.split(separator: " ").dropLast().joined(separator: " ") })
        let unknown = found.subtracting(map(\.name)).sorted()
        guard !unknown.isEmpty else { return }
        let names = unknown.joined(separator: ", ")
        throw StoreError(
            code: .unsuitable,
            message: "\(place) has tables of protocols that this program lacks (\(names)): use the program that has them")
    }
}
