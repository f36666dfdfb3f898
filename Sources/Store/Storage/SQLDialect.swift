/// The parts of SQL in which the engines differ.
package protocol SQLDialect {
    /// The engine that keeps the texts of statements.
    static var engine: any Store.Type { get }
    /// Before the number of a parameter.
    static var parameterMark: String { get }
    /// Of an insertion that must not meet an existing row.
    static var insertionEnd: String { get }

    static func name(_ name: String) -> String
    static func type(_ kind: Column.Kind) -> String
    /// The definition of the column `id`.
    static func id(of table: Table) -> String
    /// Whether ids may be assigned again without ``Table/neverReusesIDs``: then a table is made anew to change that.
    static var mayReuseIDs: Bool { get }
    /// Follows the columns of a new table.
    static var tableEnd: String { get }
    /// - Parameter prefix: A parameter.
    static func hasPrefix(_ column: String, _ prefix: String) -> String
    /// - Parameter ids: A parameter: a list of integers.
    static func among(_ column: String, _ ids: String) -> String
    static func isPresent(_ column: String) -> String
    static func byteCount(_ column: Column) -> String
    static func order(_ order: Query.Order, _ conditions: [Condition]) -> String
}

extension SQLDialect {
    package static func name(_ column: Column) -> String { name(column.name) }
    package static func names(_ columns: [Column]) -> String { columns.map { name($0.name) }.joined(separator: ", ") }
}

/// Numbers the parameters of a statement, from 1.
package struct ParameterNumbers {
    private let mark: String
    private var last: Int

    package init(_ mark: String, after last: Int = 0) {
        (self.mark, self.last) = (mark, last)
    }

    package mutating func next() -> String {
        last += 1
        return "\(mark)\(last)"
    }
}

// MARK: - Statements

extension Query {
    /// Arguments are numbered: those of the conditions, then any that `end` numbers.
    ///
    /// - Parameter forOneID: whether the argument of a ``Condition/among(_:)`` is an id instead of a list.
    package func sql<Dialect: SQLDialect>(
        _ dialect: Dialect.Type, forOneID: Bool = false, hint: String = "", end: (inout ParameterNumbers) -> String = { _ in "" }
    ) -> String {
        (forOneID ? textForOneID : text).value(for: dialect.engine) {
            var parameters = ParameterNumbers(dialect.parameterMark)
            let outputs = outputs.map { $0.sql(dialect) }.joined(separator: ", ")
            var sql = "SELECT \(isDistinct ? "DISTINCT " : "")\(outputs) FROM \(dialect.name(table.name))\(hint)"
            sql += conditions.sql(dialect, &parameters, forOneID)
            if let group { sql += " GROUP BY \(dialect.name(group))" }
            if !order.isEmpty { sql += " ORDER BY " + order.map { dialect.order($0, conditions) }.joined(separator: ", ") }
            return sql + end(&parameters)
        }
    }
}

extension Mutation {
    /// The columns that it sets.
    package var columns: [Column] {
        switch kind {
        case .insert(let columns), .insertOrIgnore(let columns), .upsert(let columns), .update(let columns, _), .updateAny(let columns, _):
            columns
        case .delete: []
        }
    }

    package var conditions: [Condition] {
        switch kind {
        case .insert, .insertOrIgnore, .upsert: []
        case .update(_, let conditions), .updateAny(_, let conditions), .delete(let conditions): conditions
        }
    }

    /// The columns that identify the row to replace.
    package var keys: [Column] { columns.contains(.id) ? [.id] : table.uniqueColumns }

    /// Arguments are numbered: those of the columns, then those of the conditions.
    ///
    /// - Parameter forOneID: see ``Query/sql(_:forOneID:hint:end:)``.
    package func sql<Dialect: SQLDialect>(_ dialect: Dialect.Type, forOneID: Bool = false) -> String {
        (forOneID ? textForOneID : text).value(for: dialect.engine) {
            var parameters = ParameterNumbers(dialect.parameterMark)
            let table = dialect.name(table.name)
            switch kind {
            case .insert, .insertOrIgnore, .upsert:
                let values = columns.map { _ in parameters.next() }.joined(separator: ", ")
                return "INSERT INTO \(table) (\(dialect.names(columns))) VALUES (\(values))" + conflict(dialect)
            case .update, .updateAny:
                let assignments = columns.map { "\(dialect.name($0)) = \(parameters.next())" }.joined(separator: ", ")
                return "UPDATE \(table) SET \(assignments)" + conditions.sql(dialect, &parameters, forOneID)
            case .delete:
                return "DELETE FROM \(table)" + conditions.sql(dialect, &parameters, forOneID)
            }
        }
    }

    private func conflict<Dialect: SQLDialect>(_ dialect: Dialect.Type) -> String {
        switch kind {
        case .insert: return dialect.insertionEnd
        case .upsert:
            let assignments = columns.filter { !keys.contains($0) }.map { "\(dialect.name($0)) = excluded.\(dialect.name($0))" }
            return " ON CONFLICT (\(dialect.names(keys))) DO "
                + (assignments.isEmpty ? "NOTHING" : "UPDATE SET " + assignments.joined(separator: ", "))
        default: return " ON CONFLICT DO NOTHING"
        }
    }
}

extension [Condition] {
    fileprivate func sql<Dialect: SQLDialect>(
        _ dialect: Dialect.Type, _ parameters: inout ParameterNumbers, _ forOneID: Bool
    ) -> String {
        guard !isEmpty else { return "" }
        var terms: [String] = []
        for condition in self { terms.append(condition.sql(dialect, &parameters, forOneID)) }
        return " WHERE " + terms.joined(separator: " AND ")
    }
}

extension Condition {
    fileprivate func sql<Dialect: SQLDialect>(
        _ dialect: Dialect.Type, _ parameters: inout ParameterNumbers, _ forOneID: Bool
    ) -> String {
        switch self {
        case .equal(let column): "\(dialect.name(column)) = \(parameters.next())"
        case .hasValue(let column, let value): "\(dialect.name(column)) = \(value)"
        case .present(let column): "\(dialect.name(column)) IS NOT NULL"
        case .absent(let column): "\(dialect.name(column)) IS NULL"
        case .less(let column): "\(dialect.name(column)) < \(parameters.next())"
        case .atLeast(let column): "\(dialect.name(column)) >= \(parameters.next())"
        case .between(let column): "\(dialect.name(column)) BETWEEN \(parameters.next()) AND \(parameters.next())"
        case .hasPrefix(let column): dialect.hasPrefix(dialect.name(column), parameters.next())
        case .among(let column) where forOneID: "\(dialect.name(column)) = \(parameters.next())"
        case .among(let column): dialect.among(dialect.name(column), parameters.next())
        }
    }
}

extension Query.Output {
    fileprivate func sql<Dialect: SQLDialect>(_ dialect: Dialect.Type) -> String {
        switch self {
        case .column(let column): dialect.name(column)
        case .isPresent(let column): dialect.isPresent(dialect.name(column))
        case .byteCount(let column): dialect.byteCount(column)
        case .small(let column, let limit): "CASE WHEN \(dialect.byteCount(column)) <= \(limit) THEN \(dialect.name(column)) END"
        case .count: "count(*)"
        case .distinctCount(let column): "count(DISTINCT \(dialect.name(column)))"
        case .minimum(let column): "min(\(dialect.name(column)))"
        case .maximum(let column): "max(\(dialect.name(column)))"
        }
    }
}

// MARK: - Tables

extension StorePart.Step {
    package func sql<Dialect: SQLDialect>(_ dialect: Dialect.Type) -> [String] {
        switch self {
        case .create(let table): [table.sql(dialect)] + table.indexes.map { $0.sql(on: table, dialect) }
        case .addColumn(let column, let table): ["ALTER TABLE \(dialect.name(table.name)) ADD COLUMN \(column.sql(dialect))"]
        case .createIndex(let index, let table): [index.sql(on: table, dialect)]
        case .neverReuseIDs(let table): dialect.mayReuseIDs ? table.rebuildingSQL(dialect) : []
        case .drop(let table): ["DROP TABLE \(dialect.name(table))"]
        }
    }
}

extension Table {
    /// Makes the table anew, with its rows and their ids.
    fileprivate func rebuildingSQL<Dialect: SQLDialect>(_ dialect: Dialect.Type) -> [String] {
        let (new, old) = (dialect.name(name), dialect.name("\(name)_before"))
        let columns = dialect.names([.id] + columns)
        return [
            "ALTER TABLE \(new) RENAME TO \(old)", sql(dialect), "INSERT INTO \(new) (\(columns)) SELECT \(columns) FROM \(old)",
            "DROP TABLE \(old)",
        ] + indexes.map { $0.sql(on: self, dialect) }
    }

    fileprivate func sql<Dialect: SQLDialect>(_ dialect: Dialect.Type) -> String {
        var lines = [dialect.id(of: self)] + columns.map { $0.sql(dialect) }
        if !uniqueColumns.isEmpty { lines.append("UNIQUE (\(dialect.names(uniqueColumns)))") }
        return "CREATE TABLE \(dialect.name(name)) (\(lines.joined(separator: ", ")))\(dialect.tableEnd)"
    }
}

extension Column {
    fileprivate func sql<Dialect: SQLDialect>(_ dialect: Dialect.Type) -> String {
        "\(dialect.name(self)) \(dialect.type(kind))\(isOptional ? "" : " NOT NULL")"
    }
}

extension Index {
    package func sql<Dialect: SQLDialect>(on table: Table, _ dialect: Dialect.Type) -> String {
        let rows =
            switch condition {
            case .present(let column): " WHERE \(dialect.name(column)) IS NOT NULL"
            case .equal(let column, let value): " WHERE \(dialect.name(column)) = \(value)"
            case nil: ""
            }
        return "CREATE INDEX \(dialect.name(name)) ON \(dialect.name(table.name)) (\(dialect.names(columns)))\(rows)"
    }
}
