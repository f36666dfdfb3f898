import Storage

/// The rows that a read selects or a change touches, described by columns: for some columns, all values that these rows may have before or after the
/// change. The other columns are unrestricted.
///
/// Two footprints with disjoint values in a common column have no row in common. So commands that read in the same exchange can be decided together,
/// unless one reads rows that an earlier one changes.
struct Footprint {
    /// A value of a column, as hashes. Columns are compared by name, since a table's and a query's may differ in being optional.
    fileprivate struct Known {
        let column: Int
        let value: Int

        init(_ column: Column, _ value: Value) {
            self.column = column.name.hashValue
            self.value = Self.hash(value)
        }

        /// A collision only makes footprints seem to overlap. Integers, such as ids, have none.
        static func hash(_ value: Value) -> Int {
            switch value {
            case .integer(let integer): return Int(integer)
            case .bytes(let bytes):
                var hasher = Hasher()
                bytes.withUnsafeBytes { hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: $0.prefix(64))) }
                return hasher.finalize()
            case .text, .null: return value.hashValue
            }
        }
    }

    let table: String
    /// The values of a column are next to each other.
    private var known: [Known]

    init(_ read: Read) {
        table = read.query.table.name
        known = Self.known(read.query.conditions, read.arguments, ids: read.ids)
    }

    /// - Parameters:
    ///   - change: the change to describe.
    ///   - facts: column values of rows that the command read before.
    init(_ change: Change, _ facts: RowFacts) {
        let (mutation, arguments) = (change.mutation, change.arguments)
        let assigned = zip(mutation.columns, arguments)
        table = mutation.table.name
        switch mutation.kind {
        case .insert, .insertOrIgnore: known = assigned.map(Known.init)
        case .upsert:
            // If a row is replaced, only its key is known.
            let keys = mutation.keys
            known = assigned.filter { keys.contains($0.0) }.map(Known.init)
        case .update, .updateAny, .delete:
            known = Self.known(mutation.conditions, arguments, after: mutation.columns.count, ids: change.ids)
            let ids = known.filter { $0.column == RowFacts.idColumn }
            if ids.count == 1 {
                let conditions = known
                known += facts.known(of: ids[0].value, in: table).filter { fact in !conditions.contains { $0.column == fact.column } }
            }
            for (column, value) in assigned {
                let value = Known(column, value)
                if let index = known.firstIndex(where: { $0.column == value.column }) { known.insert(value, at: index) }
            }
        }
    }

    /// The values that the conditions imply for every row that meets them.
    ///
    /// - Parameter start: the index of the first condition's argument.
    fileprivate static func known(_ conditions: [Condition], _ arguments: [Value], after start: Int = 0, ids: [Int64]) -> [Known] {
        var (known, next) = ([Known](), start)
        for condition in conditions {
            switch condition {
            case .equal(let column):
                known.append(Known(column, next < arguments.count ? arguments[next] : .null))
                next += 1
            case .hasValue(let column, let value): known.append(Known(column, .integer(value)))
            case .among(let column): known += ids.map { Known(column, .integer($0)) }
            case .less, .atLeast, .hasPrefix: next += 1
            case .between: next += 2
            case .present, .absent: break
            }
        }
        return known
    }

    func mayMeet(_ other: Footprint) -> Bool {
        guard table == other.table else { return false }
        var start = 0
        while start < known.count {
            let column = known[start].column
            var (isCommon, isMet, end) = (false, false, start)
            while end < known.count, known[end].column == column {
                for other in other.known where other.column == column {
                    isCommon = true
                    if other.value == known[end].value { isMet = true }
                }
                end += 1
            }
            if isCommon, !isMet { return false }
            start = end
        }
        return true
    }
}

/// Column values known from a command's reads, by row id: a change may name a row by its id only.
struct RowFacts {
    fileprivate static let idColumn = Column.id.name.hashValue
    /// They are searched one by one. A change of a row that is left out may only seem to meet more reads.
    private static let limit = 256

    private var rows: [(table: String, id: Int, known: [Footprint.Known])] = []

    fileprivate func known(of id: Int, in table: String) -> [Footprint.Known] {
        rows.last { $0.id == id && $0.table == table }?.known ?? []
    }

    mutating func note(_ read: Read, _ found: [Row]) {
        guard !found.isEmpty, rows.count + found.count <= Self.limit, let index = read.query.outputs.firstIndex(of: .column(.id)) else {
            return
        }
        var known = Footprint.known(read.query.conditions, read.arguments, ids: read.ids)
        known.removeAll { $0.column == Self.idColumn }
        guard !known.isEmpty else { return }
        for row in found { rows.append((read.query.table.name, Footprint.Known.hash(row.values[index]), known)) }
    }
}
