import Storage

/// Names are not quoted: the texts of tables must be those that the databases of all releases have.
enum SQLite: SQLDialect {
    static var engine: any Store.Type { SQLiteStore.self }
    static let parameterMark = "?"
    static let insertionEnd = ""
    static let mayReuseIDs = true
    static let tableEnd = ""

    static func name(_ name: String) -> String { name }

    static func type(_ kind: Column.Kind) -> String {
        switch kind {
        case .integer: "INTEGER"
        case .text: "TEXT"
        case .bytes: "BLOB"
        }
    }

    static func id(of table: Table) -> String { "id INTEGER PRIMARY KEY" + (table.neverReusesIDs ? " AUTOINCREMENT" : "") }

    /// substr of an empty blob is NULL.
    static func hasPrefix(_ column: String, _ prefix: String) -> String {
        "(\(column) IS NOT NULL AND coalesce(substr(\(column), 1, length(\(prefix))), x'') = \(prefix))"
    }

    static func among(_ column: String, _ ids: String) -> String { "\(column) IN (SELECT value FROM json_each(\(ids)))" }
    static func isPresent(_ column: String) -> String { "\(column) IS NOT NULL" }

    static func byteCount(_ column: Column) -> String {
        column.kind == .text ? "length(CAST(\(column.name) AS BLOB))" : "length(\(column.name))"
    }

    static func order(_ order: Query.Order, _ conditions: [Condition]) -> String {
        switch order {
        case .ascending(let column): column.name
        case .descending(let column): "\(column.name) DESC"
        case .output(let index): "\(index + 1)"
        }
    }
}

// A list of ids takes an ephemeral table, which SQLite allocates 87 KB for, also if it is a list of parameters. Most reads have one id.

extension Read {
    /// Arguments are numbered: those of the conditions, then the limit and the offset.
    var sql: String {
        query.sql(SQLite.self, forOneID: ids.count == 1, hint: query.index.map { " INDEXED BY \($0)" } ?? "") {
            " LIMIT \($0.next()) OFFSET \($0.next())"
        }
    }
}

extension Change {
    var sql: String { mutation.sql(SQLite.self, forOneID: ids.count == 1) }
}
