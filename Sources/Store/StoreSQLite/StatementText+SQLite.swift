import Storage

extension Query {
    /// Arguments are numbered: those of the conditions, then the limit and the offset.
    var sql: String {
        text.value(for: SQLiteStore.self) {
            var parameters = ParameterNumbers()
            var sql = "SELECT \(isDistinct ? "DISTINCT " : "")\(outputs.map(\.sql).joined(separator: ", ")) FROM \(table.name)"
            if let index { sql += " INDEXED BY \(index)" }
            sql += conditions.sql(&parameters)
            if let group { sql += " GROUP BY \(group.name)" }
            if !order.isEmpty { sql += " ORDER BY " + order.map(\.sql).joined(separator: ", ") }
            return sql + " LIMIT \(parameters.next()) OFFSET \(parameters.next())"
        }
    }
}

extension Mutation {
    /// Arguments are numbered: those of the columns, then those of the conditions.
    var sql: String {
        text.value(for: SQLiteStore.self) {
            var parameters = ParameterNumbers()
            switch kind {
            case .insert(let columns): return insert(columns, &parameters)
            case .insertOrIgnore(let columns): return insert(columns, &parameters) + " ON CONFLICT DO NOTHING"
            case .upsert(let columns): return insert(columns, &parameters) + replacement(columns)
            case .update(let columns, let conditions), .updateAny(let columns, let conditions):
                let assignments = columns.map { "\($0.name) = \(parameters.next())" }.joined(separator: ", ")
                return "UPDATE \(table.name) SET \(assignments)" + conditions.sql(&parameters)
            case .delete(let conditions):
                return "DELETE FROM \(table.name)" + conditions.sql(&parameters)
            }
        }
    }

    private func insert(_ columns: [Column], _ parameters: inout ParameterNumbers) -> String {
        let names = columns.map(\.name).joined(separator: ", ")
        return "INSERT INTO \(table.name) (\(names)) VALUES (\(columns.map { _ in parameters.next() }.joined(separator: ", ")))"
    }

    private func replacement(_ columns: [Column]) -> String {
        let keys = columns.contains(.id) ? [Column.id] : table.uniqueColumns
        let assignments = columns.filter { !keys.contains($0) }.map { "\($0.name) = excluded.\($0.name)" }
        return " ON CONFLICT (\(keys.map(\.name).joined(separator: ", "))) DO "
            + (assignments.isEmpty ? "NOTHING" : "UPDATE SET " + assignments.joined(separator: ", "))
    }
}

private struct ParameterNumbers {
    private var last = 0

    mutating func next() -> String {
        last += 1
        return "?\(last)"
    }
}

extension [Condition] {
    fileprivate func sql(_ parameters: inout ParameterNumbers) -> String {
        guard !isEmpty else { return "" }
        var terms: [String] = []
        for condition in self { terms.append(condition.sql(&parameters)) }
        return " WHERE " + terms.joined(separator: " AND ")
    }
}

extension Condition {
    fileprivate func sql(_ parameters: inout ParameterNumbers) -> String {
        switch self {
        case .equal(let column): return "\(column.name) = \(parameters.next())"
        case .present(let column): return "\(column.name) IS NOT NULL"
        case .absent(let column): return "\(column.name) IS NULL"
        case .less(let column): return "\(column.name) < \(parameters.next())"
        case .atLeast(let column): return "\(column.name) >= \(parameters.next())"
        case .between(let column): return "\(column.name) BETWEEN \(parameters.next()) AND \(parameters.next())"
        case .hasPrefix(let column):
            let prefix = parameters.next()
            // substr of an empty blob is NULL.
            return "(\(column.name) IS NOT NULL AND coalesce(substr(\(column.name), 1, length(\(prefix))), x'') = \(prefix))"
        case .among(let column): return "\(column.name) IN (SELECT value FROM json_each(\(parameters.next())))"
        }
    }
}

extension Query.Output {
    fileprivate var sql: String {
        switch self {
        case .column(let column): column.name
        case .isPresent(let column): "\(column.name) IS NOT NULL"
        case .byteCount(let column): column.kind == .text ? "length(CAST(\(column.name) AS BLOB))" : "length(\(column.name))"
        case .count: "count(*)"
        case .distinctCount(let column): "count(DISTINCT \(column.name))"
        case .minimum(let column): "min(\(column.name))"
        case .maximum(let column): "max(\(column.name))"
        }
    }
}

extension Query.Order {
    fileprivate var sql: String {
        switch self {
        case .ascending(let column): column.name
        case .descending(let column): "\(column.name) DESC"
        case .output(let index): "\(index + 1)"
        }
    }
}

extension StorePart.Step {
    var sql: [String] {
        switch self {
        case .create(let table): [table.sql] + table.indexes.map { $0.sql(on: table) }
        case .addColumn(let column, let table): ["ALTER TABLE \(table.name) ADD COLUMN \(column.sql)"]
        case .createIndex(let index, let table): [index.sql(on: table)]
        case .drop(let table): ["DROP TABLE \(table)"]
        }
    }
}

extension Table {
    fileprivate var sql: String {
        var lines = ["id INTEGER PRIMARY KEY" + (neverReusesIDs ? " AUTOINCREMENT" : "")] + columns.map(\.sql)
        if !uniqueColumns.isEmpty { lines.append("UNIQUE (\(uniqueColumns.map(\.name).joined(separator: ", ")))") }
        return "CREATE TABLE \(name) (\(lines.joined(separator: ", ")))"
    }
}

extension Column {
    fileprivate var sql: String {
        let type =
            switch kind {
            case .integer: "INTEGER"
            case .text: "TEXT"
            case .bytes: "BLOB"
            }
        return "\(name) \(type)\(isOptional ? "" : " NOT NULL")"
    }
}

extension Index {
    fileprivate func sql(on table: Table) -> String {
        let rows =
            switch condition {
            case .present(let column): " WHERE \(column.name) IS NOT NULL"
            case .equal(let column, let value): " WHERE \(column.name) = \(value)"
            case nil: ""
            }
        return "CREATE INDEX \(name) ON \(table.name) (\(columns.map(\.name).joined(separator: ", ")))\(rows)"
    }
}
