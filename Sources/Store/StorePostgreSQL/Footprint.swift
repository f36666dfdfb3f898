import Storage

/// The rows that a read selects or a change touches, described by columns: for some columns, all values that these rows may have before or after the
/// change. The other columns are unrestricted.
///
/// Two footprints with disjoint values in a common column have no row in common. So commands that read in the same exchange can be decided together,
/// unless one reads rows that an earlier one changes.
struct Footprint {
    /// Values by column name, since a table's column and a query's may differ in being optional.
    typealias Known = [String: [Value]]

    let table: String
    /// Values are hashes: a collision only makes footprints seem to overlap.
    private let columns: [(name: Int, values: [Int])]

    private init(_ table: Table, _ known: Known) {
        self.table = table.name
        columns = known.map { ($0.key.hashValue, $0.value.map(\.hashValue)) }
    }

    init(_ read: Read) {
        self.init(read.query.table, Self.known(read.query.conditions, arguments: read.arguments[...], ids: read.ids))
    }

    /// - Parameters:
    ///   - change: the change to describe.
    ///   - facts: column values of rows that the command read before.
    init(_ change: Change, _ facts: RowFacts) {
        let (mutation, arguments) = (change.mutation, change.arguments)
        let assigned = zip(mutation.columns, arguments)
        var known: Known = [:]
        switch mutation.kind {
        case .insert, .insertOrIgnore:
            for (column, value) in assigned { known[column.name] = [value] }
        case .upsert:
            // If a row is replaced, only its key is known.
            for (column, value) in assigned where mutation.keys.contains(column) { known[column.name] = [value] }
        case .update, .updateAny, .delete:
            known = Self.known(mutation.conditions, arguments: arguments.dropFirst(mutation.columns.count), ids: change.ids)
            if let ids = known[Column.id.name], ids.count == 1 {
                known.merge(facts.known(of: ids[0], in: mutation.table)) { condition, _ in condition }
            }
            for (column, value) in assigned { known[column.name]?.append(value) }
        }
        self.init(mutation.table, known)
    }

    /// The values that the conditions imply for every row that meets them.
    fileprivate static func known(_ conditions: [Condition], arguments: ArraySlice<Value>, ids: [Int64]) -> Known {
        var (known, rest) = (Known(), arguments)
        for condition in conditions {
            switch condition {
            case .equal(let column): known[column.name] = rest.popFirst().map { [$0] }
            case .among(let column): known[column.name] = ids.map(Value.integer)
            case .less, .atLeast, .hasPrefix: rest = rest.dropFirst()
            case .between: rest = rest.dropFirst(2)
            case .present, .absent: break
            }
        }
        return known
    }

    func mayMeet(_ other: Footprint) -> Bool {
        guard table == other.table else { return false }
        for (name, values) in columns {
            for (otherName, otherValues) in other.columns where name == otherName {
                if !values.contains(where: otherValues.contains) { return false }
            }
        }
        return true
    }
}

/// Column values known from a command's reads, by row id: a change may name a row by its id only.
struct RowFacts {
    private struct RowID: Hashable {
        let table: String
        let id: Value
    }

    private var rows: [RowID: Footprint.Known] = [:]

    func known(of id: Value, in table: Table) -> Footprint.Known {
        rows[RowID(table: table.name, id: id)] ?? [:]
    }

    mutating func note(_ read: Read, _ found: [Row]) {
        guard !found.isEmpty, let index = read.query.outputs.firstIndex(of: .column(.id)) else { return }
        var known = Footprint.known(read.query.conditions, arguments: read.arguments[...], ids: [])
        known[Column.id.name] = nil
        guard !known.isEmpty else { return }
        for row in found { rows[RowID(table: read.query.table.name, id: row.values[index])] = known }
    }
}
