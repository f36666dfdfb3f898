package import Storage

// Integers are bigint, texts are text with collation C, bytes are bytea. Names are quoted, since some are SQL keywords.

extension Read {
    /// - Throws: ``Storage/UnexpectedValue`` for an argument that its column can't have.
    func statement() throws(UnexpectedValue) -> Statement {
        var parameters = ParameterNumbers(after: query.conditions.parameterCount)
        var sql = query.sql
        if limit != nil { sql += " LIMIT \(parameters.next())" }
        if offset != 0 { sql += " OFFSET \(parameters.next())" }
        var statement = Statement(sql)
        try statement.add(query.conditions, arguments: arguments[...], ids: ids)
        if let limit { try statement.add(.integer(Int64(limit)), as: .integer) }
        if offset != 0 { try statement.add(.integer(Int64(offset)), as: .integer) }
        return statement
    }
}

extension Change {
    /// - Throws: ``Storage/UnexpectedValue`` for an argument that its column can't have.
    func statement() throws(UnexpectedValue) -> Statement {
        var statement = Statement(mutation.sql)
        let columns = mutation.columns
        for (index, column) in columns.enumerated() {
            try statement.add(index < arguments.count ? arguments[index] : .null, as: Statement.Kind(column.kind))
        }
        try statement.add(mutation.conditions, arguments: arguments.dropFirst(columns.count), ids: ids)
        return statement
    }
}

extension Mutation {
    /// The columns that it sets.
    var columns: [Column] {
        switch kind {
        case .insert(let columns), .insertOrIgnore(let columns), .upsert(let columns), .update(let columns, _), .updateAny(let columns, _):
            columns
        case .delete: []
        }
    }

    var conditions: [Condition] {
        switch kind {
        case .insert, .insertOrIgnore, .upsert: []
        case .update(_, let conditions), .updateAny(_, let conditions), .delete(let conditions): conditions
        }
    }

    /// The columns that identify the row to replace.
    var keys: [Column] { columns.contains(.id) ? [.id] : table.uniqueColumns }

    fileprivate var sql: String {
        text.value(for: PostgreSQLStore.self) {
            var parameters = ParameterNumbers()
            switch kind {
            // A conflict shows as a missing result row: an error would abort the transaction.
            case .insert(let columns): return insert(columns, &parameters) + " ON CONFLICT DO NOTHING RETURNING id"
            case .insertOrIgnore(let columns): return insert(columns, &parameters) + " ON CONFLICT DO NOTHING"
            case .upsert(let columns): return insert(columns, &parameters) + replacement(columns)
            case .update(let columns, let conditions), .updateAny(let columns, let conditions):
                let assignments = columns.map { "\($0.quoted) = \(parameters.next())" }.joined(separator: ", ")
                return "UPDATE \(table.quoted) SET \(assignments)" + conditions.sql(&parameters)
            case .delete(let conditions):
                return "DELETE FROM \(table.quoted)" + conditions.sql(&parameters)
            }
        }
    }

    private func insert(_ columns: [Column], _ parameters: inout ParameterNumbers) -> String {
        "INSERT INTO \(table.quoted) (\(columns.quoted)) VALUES (\(columns.map { _ in parameters.next() }.joined(separator: ", ")))"
    }

    private func replacement(_ columns: [Column]) -> String {
        let assignments = columns.filter { !keys.contains($0) }.map { "\($0.quoted) = excluded.\($0.quoted)" }
        return " ON CONFLICT (\(keys.quoted)) DO "
            + (assignments.isEmpty ? "NOTHING" : "UPDATE SET " + assignments.joined(separator: ", "))
    }
}

extension Query {
    /// Without a LIMIT parameter, for which the server makes bad plans.
    fileprivate var sql: String {
        text.value(for: PostgreSQLStore.self) {
            var parameters = ParameterNumbers()
            var sql = "SELECT \(isDistinct ? "DISTINCT " : "")\(outputs.map(\.sql).joined(separator: ", ")) FROM \(table.quoted)"
            sql += conditions.sql(&parameters)
            if let group { sql += " GROUP BY \(group.quoted)" }
            if !order.isEmpty { sql += " ORDER BY " + order.map { $0.sql(conditions) }.joined(separator: ", ") }
            return sql
        }
    }
}

private struct ParameterNumbers {
    private var last: Int

    init(after last: Int = 0) {
        self.last = last
    }

    mutating func next() -> String {
        last += 1
        return "$\(last)"
    }
}

extension Statement {
    fileprivate mutating func add(_ conditions: [Condition], arguments: ArraySlice<Value>, ids: [Int64]) throws(UnexpectedValue) {
        var rest = arguments
        for condition in conditions {
            if case .among = condition { add(ids) }
            for kind in condition.argumentKinds { try add(rest.popFirst() ?? .null, as: kind) }
        }
    }
}

extension [Condition] {
    fileprivate var parameterCount: Int {
        reduce(0) { count, condition in
            if case .among = condition { count + 1 } else { count + condition.argumentKinds.count }
        }
    }

    fileprivate func sql(_ parameters: inout ParameterNumbers) -> String {
        guard !isEmpty else { return "" }
        var terms: [String] = []
        for condition in self { terms.append(condition.sql(&parameters)) }
        return " WHERE " + terms.joined(separator: " AND ")
    }
}

extension Condition {
    fileprivate var argumentKinds: [Statement.Kind] {
        switch self {
        case .equal(let column), .less(let column), .atLeast(let column), .hasPrefix(let column): [Statement.Kind(column.kind)]
        case .between(let column): [Statement.Kind(column.kind), Statement.Kind(column.kind)]
        case .present, .absent, .among: []
        }
    }

    fileprivate func sql(_ parameters: inout ParameterNumbers) -> String {
        switch self {
        case .equal(let column): return "\(column.quoted) = \(parameters.next())"
        case .present(let column): return "\(column.quoted) IS NOT NULL"
        case .absent(let column): return "\(column.quoted) IS NULL"
        case .less(let column): return "\(column.quoted) < \(parameters.next())"
        case .atLeast(let column): return "\(column.quoted) >= \(parameters.next())"
        case .between(let column): return "\(column.quoted) BETWEEN \(parameters.next()) AND \(parameters.next())"
        case .hasPrefix(let column):
            let prefix = parameters.next()
            return "substr(\(column.quoted), 1, length(\(prefix))) = \(prefix)"
        case .among(let column): return "\(column.quoted) = ANY(\(parameters.next()))"
        }
    }
}

extension Query.Output {
    fileprivate var sql: String {
        switch self {
        case .column(let column): column.quoted
        case .isPresent(let column): "(\(column.quoted) IS NOT NULL)::integer::bigint"
        case .byteCount(let column): "octet_length(\(column.quoted))::bigint"
        case .count: "count(*)"
        case .distinctCount(let column): "count(DISTINCT \(column.quoted))"
        case .minimum(let column): "min(\(column.quoted))"
        case .maximum(let column): "max(\(column.quoted))"
        }
    }
}

extension Query.Order {
    /// NULLs come first, as in SQLite. Omitted for columns without NULLs, since indexes have NULLs last.
    fileprivate func sql(_ conditions: [Condition]) -> String {
        func canBeNull(_ column: Column) -> Bool { column.isOptional && !conditions.contains(.present(column)) }
        return switch self {
        case .ascending(let column): column.quoted + (canBeNull(column) ? " NULLS FIRST" : "")
        case .descending(let column): "\(column.quoted) DESC" + (canBeNull(column) ? " NULLS LAST" : "")
        case .output(let index): "\(index + 1) NULLS FIRST"
        }
    }
}

// MARK: Tables

extension StorePart.Step {
    var sql: [String] {
        switch self {
        case .create(let table): [table.sql] + table.indexes.map { $0.sql(on: table) }
        case .addColumn(let column, let table): ["ALTER TABLE \(table.quoted) ADD COLUMN \(column.sql)"]
        case .createIndex(let index, let table): [index.sql(on: table)]
        case .drop(let table): ["DROP TABLE \(quote(table))"]
        }
    }
}

extension Table {
    package var quoted: String { quote(name) }

    /// The fill factor leaves room on a page for new versions of rows, so that updates which change no indexed column need no index change.
    fileprivate var sql: String {
        var lines = ["id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"] + columns.map(\.sql)
        if !uniqueColumns.isEmpty { lines.append("UNIQUE (\(uniqueColumns.quoted))") }
        return "CREATE TABLE \(quoted) (\(lines.joined(separator: ", "))) WITH (fillfactor = 90)"
    }
}

extension Column {
    package var quoted: String { quote(name) }

    fileprivate var sql: String {
        let type =
            switch kind {
            case .integer: "bigint"
            case .text: "text COLLATE \"C\""
            case .bytes: "bytea"
            }
        return "\(quoted) \(type)\(isOptional ? "" : " NOT NULL")"
    }
}

extension [Column] {
    fileprivate var quoted: String { map(\.quoted).joined(separator: ", ") }
}

extension Index {
    func sql(on table: Table) -> String {
        let rows =
            switch condition {
            case .present(let column): " WHERE \(column.quoted) IS NOT NULL"
            case .equal(let column, let value): " WHERE \(column.quoted) = \(value)"
            case nil: ""
            }
        return "CREATE INDEX \(quote(name)) ON \(table.quoted) (\(columns.quoted))\(rows)"
    }
}

private func quote(_ name: String) -> String {
    "\"" + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
}
