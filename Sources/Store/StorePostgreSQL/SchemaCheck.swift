import Storage

/// Names of the objects on a part's tables that nodes create in a shared database beside the parts' migrations.
package enum SharedObjects {
    /// Prefix of the triggers that notify other nodes, and of their functions.
    package static let noticePrefix = "notify_"
    /// The trigger that refuses a delivery which was accepted before, and its function.
    package static let guardName = "enqueued_once"
    /// Prefix of the index by partition; the table's name follows.
    package static let partitionIndexPrefix = "cluster_partition_of_"
}

/// Compares the parts' tables with their declarations: a restored or altered database could hold a trigger or rule that removes each row again,
/// or an index that refuses rows.
///
/// Additions that change no row are accepted: optional columns and indexes over columns, which a later release or an operator may add while nodes of
/// this release run, and ``SharedObjects``. Other tables are ignored.
struct SchemaCheck {
    private let tables: [Table]

    init(_ schema: Schema) {
        tables = [Properties.table] + schema.parts.tables
    }

    /// - Throws: `StoreError` with `unsuitable` for the first difference, and errors of the database.
    func verify(_ connection: PostgreSQLConnection, at address: PostgreSQLAddress) throws {
        let found = try connection.run([foreignObjects, columns, indexes].map { Statement($0, isPrepared: false) }).map(\.rows)
        let differences =
            try found[0].map { try $0.text(0) } + columnDifferences(found[1]) + indexDifferences(found[2].map(FoundIndex.init))
        guard let first = differences.first else { return }
        let more = differences.count > 1 ? " (and \(differences.count - 1) more)" : ""
        throw StoreError(
            code: .unsuitable, message: "PostgreSQL (\(address)) does not have the tables that waku-push creates\(more): \(first)")
    }

    private var own: String {
        let names = tables.map { "'\($0.name)'" }.joined(separator: ", ")
        return
            "own AS (SELECT oid, relname, relkind, relpersistence, relrowsecurity, relnamespace FROM pg_class WHERE relname IN (\(names)) "
            + "AND relnamespace = quote_ident(current_schema())::regnamespace)"
    }

    // MARK: Triggers, rules and policies

    /// `tgtype` is a bit mask: 1 FOR EACH ROW, 2 BEFORE, 64 INSTEAD OF.
    private var foreignObjects: String {
        """
        WITH \(own) \
        SELECT format('trigger %s on %s: drop it', t.tgname, own.relname) FROM pg_trigger t JOIN own ON own.oid = t.tgrelid \
        JOIN pg_proc p ON p.oid = t.tgfoid WHERE NOT t.tgisinternal AND NOT (t.tgtype & 67 = 1 AND p.proname = t.tgname \
        AND p.pronamespace = own.relnamespace \
        AND (t.tgname = '\(SharedObjects.guardName)' OR starts_with(t.tgname::text, '\(SharedObjects.noticePrefix)'))) \
        UNION ALL SELECT format('rule %s on %s: drop it', r.rulename, own.relname) FROM pg_rewrite r JOIN own ON own.oid = r.ev_class \
        WHERE own.relkind = 'r' \
        UNION ALL SELECT format('constraint %s on %s: drop it', c.conname, own.relname) FROM pg_constraint c JOIN own ON own.oid = c.conrelid \
        WHERE c.contype NOT IN ('p', 'u', 'n', 't') \
        UNION ALL SELECT format('row security on %s: ALTER TABLE %1$s DISABLE ROW LEVEL SECURITY', relname) FROM own WHERE relrowsecurity \
        UNION ALL SELECT format('%s is not a table of its own: restore a backup', relname) FROM own WHERE relkind <> 'r' \
        OR EXISTS (SELECT FROM pg_inherits i WHERE own.oid IN (i.inhparent, i.inhrelid)) \
        UNION ALL SELECT format('table %s is unlogged, so that a crash empties it: ALTER TABLE %1$s SET LOGGED', relname) FROM own \
        WHERE relkind = 'r' AND relpersistence <> 'p' \
        UNION ALL SELECT format('column %s of %s is computed: drop its expression', a.attname, own.relname) FROM pg_attrdef d \
        JOIN own ON own.oid = d.adrelid JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum ORDER BY 1
        """
    }

    // MARK: Columns

    private var columns: String {
        """
        WITH \(own) SELECT own.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), coalesce(c.collname::text, ''), \
        a.attnotnull::integer::bigint FROM own JOIN pg_attribute a ON a.attrelid = own.oid AND a.attnum > 0 AND NOT a.attisdropped \
        LEFT JOIN pg_collation c ON c.oid = a.attcollation ORDER BY own.relname, a.attnum
        """
    }

    private func columnDifferences(_ rows: [Row]) throws -> [String] {
        var found: [String: [String: String]] = [:]
        var differences: [String] = []
        for row in rows {
            let (table, column) = (try row.text(0), try row.text(1))
            let isOptional = try row.integer(4) == 0
            let type = [try row.text(2), try row.text(3), isOptional ? "" : "NOT NULL"].filter { !$0.isEmpty }.joined(separator: " ")
            found[table, default: [:]][column] = type
            if !isOptional, tables.first(where: { $0.name == table })?.allColumns.contains(where: { $0.name == column }) == false {
                differences.append(
                    "column \(column) of \(table) is required, but not written by this release: ALTER COLUMN … DROP NOT NULL")
            }
        }
        for table in tables {
            guard let columns = found[table.name] else {
                differences.append("table \(table.name) is missing: restore a backup")
                continue
            }
            for column in table.allColumns where columns[column.name] != column.catalogType {
                let type = columns[column.name].map { "is \($0) instead of \(column.catalogType)" } ?? "is missing"
                differences.append("column \(column.name) of \(table.name) \(type): restore a backup")
            }
        }
        return differences
    }

    // MARK: Indexes

    private struct FoundIndex {
        let table, name: String
        let isUnique, isValid, hasExpressions: Bool
        let condition: String
        let columns: [String]

        init(_ row: Row) throws {
            table = try row.text(0)
            name = try row.text(1)
            isUnique = try row.integer(2) == 1
            isValid = try row.integer(3) == 1
            hasExpressions = try row.integer(4) == 1
            condition = try row.text(5).filter { !"()\"'".contains($0) }.replacing("::bigint", with: "")
            columns = try row.text(6).split(separator: ",").map(String.init)
        }

        func isUnique(on columns: [Column]) -> Bool {
            isUnique && !hasExpressions && condition.isEmpty && Set(self.columns) == Set(columns.map(\.name))
        }

        /// Whether it rejects no row and calls no function.
        var isHarmless: Bool {
            guard !isUnique else { return false }
            if hasExpressions { return name.hasPrefix(SharedObjects.partitionIndexPrefix) }
            return condition.isEmpty || condition.wholeMatch(of: /\w+ (IS NOT NULL|IS NULL|= -?\d+)/) != nil
        }
    }

    private var indexes: String {
        """
        WITH \(own) SELECT own.relname::text, i.relname::text, x.indisunique::integer::bigint, (x.indisvalid AND x.indisready)::integer::bigint, \
        (x.indexprs IS NOT NULL)::integer::bigint, coalesce(pg_get_expr(x.indpred, x.indrelid), ''), \
        array_to_string(ARRAY(SELECT a.attname FROM unnest(x.indkey::smallint[]) WITH ORDINALITY k (number, place) \
        JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.number ORDER BY k.place), ',') \
        FROM own JOIN pg_index x ON x.indrelid = own.oid JOIN pg_class i ON i.oid = x.indexrelid ORDER BY i.relname
        """
    }

    private func indexDifferences(_ found: [FoundIndex]) -> [String] {
        var differences: [String] = []
        for table in tables {
            var others = found.filter { $0.table == table.name }
            /// - Parameter isWanted: also called with the invalid index of an interrupted REINDEX CONCURRENTLY.
            func look(for name: String, remedy: String, _ isWanted: (FoundIndex) -> Bool) {
                let fitting = others.filter(isWanted)
                others.removeAll(where: isWanted)
                if !fitting.contains(where: \.isValid) {
                    differences.append("\(name) is \(fitting.isEmpty ? "missing: \(remedy)" : "invalid: REINDEX TABLE \(table.quoted)")")
                }
            }
            for key in table.keys {
                let names = key.map(\.quoted).joined(separator: ", ")
                look(for: "unique key (\(names)) of \(table.name)", remedy: "ALTER TABLE \(table.quoted) ADD UNIQUE (\(names))") {
                    $0.isUnique(on: key)
                }
            }
            for index in table.indexes {
                look(for: "index \(index.name) on \(table.name)", remedy: index.sql(on: table, PostgreSQL.self)) { found in
                    found.name == index.name && !found.isUnique && !found.hasExpressions && found.columns == index.columns.map(\.name)
                        && found.condition == index.catalogCondition
                }
            }
            differences += others.filter { !$0.isHarmless }.map { "index \($0.name) on \(table.name): drop it" }
        }
        return differences
    }
}

extension Table {
    private var hasID: Bool { name != Properties.table.name }

    fileprivate var allColumns: [Column] { (hasID ? [.id] : []) + columns }

    /// Sets of columns that are unique.
    fileprivate var keys: [[Column]] { (hasID ? [[.id]] : []) + (uniqueColumns.isEmpty ? [] : [uniqueColumns]) }
}

extension Column {
    /// The type's name in the catalog.
    fileprivate var catalogType: String {
        let type =
            switch kind {
            case .integer: "bigint"
            case .text: "text C"
            case .bytes: "bytea"
            }
        return isOptional ? type : type + " NOT NULL"
    }
}

extension Index {
    fileprivate var catalogCondition: String {
        switch condition {
        case .present(let column): "\(column.name) IS NOT NULL"
        case .equal(let column, let value): "\(column.name) = \(value)"
        case nil: ""
        }
    }
}
