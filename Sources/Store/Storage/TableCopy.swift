import WakuCrypto

/// Copies the rows of one table from one store to another.
struct TableCopy {
    /// A page ends with the row that reaches this size: it is in memory in several copies until it is committed.
    private static let pageByteCount = 8 << 20

    let table: Table
    private let source: any TransferableStore
    private let target: any TransferableStore
    private let columns: [Column]
    private let rows: Query
    private let write: Mutation
    /// Indexes in `columns` of the encrypted column and of the columns that it is bound to.
    private let sealed: (column: Int, binding: [Int])?

    /// - Parameter table: must not be a cache.
    init(_ table: Table, from source: any TransferableStore, to target: any TransferableStore) {
        (self.table, self.source, self.target) = (table, source, target)
        let columns = [.id] + table.columns
        self.columns = columns
        rows = Query(table, columns, where: [.atLeast(.id)], order: [.ascending(.id)])
        write = Mutation(table, .upsert(columns))
        func index(_ column: Column) -> Int {
            guard let index = columns.firstIndex(where: { $0.name == column.name }) else {
                preconditionFailure("\(table.name) has no column \(column.name)")
            }
            return index
        }
        sealed = SealedRows(table).map { (index($0.column), $0.boundColumns.map(index)) }
    }

    /// Copies the rows after those that the target already has; or all rows, if those of the target differ from the source's.
    func run(page: Int, report: (Int) -> Void) async throws {
        var (next, done) = (Int64.min, 0)
        let (last, count) = try target.read(
            .find(Query(table, [.maximum(.id), .count])()) { .done((try $0[0].optionalInteger(0), Int(try $0[0].integer(1)))) })
        if let last {
            if try isSame(through: last) {
                guard last < .max else { return }
                (next, done) = (last + 1, count)
            } else {
                try await clear()
            }
        }
        while true {
            let found = try nextRows(from: next, limit: page)
            guard let end = try found.last?.integer(0) else { return }
            try await target.commit(.change(try found.map { write.change(try moved($0)) }))
            done += found.count
            report(done)
            guard end < .max else { return }
            next = end + 1
        }
    }

    /// The next rows of the source, up to a number and a size.
    private func nextRows(from first: Int64, limit: Int) throws -> [Row] {
        var (found, byteCount): ([Row], Int) = ([], 0)
        try source.scan(rows(.integer(first), limit: limit)) { row in
            found.append(row)
            for case .bytes(let bytes) in row.values { byteCount += bytes.count }
            return byteCount < Self.pageByteCount
        }
        return found
    }

    /// A row's values, with the content re-encrypted for the target.
    private func moved(_ row: Row) throws -> [Value] {
        guard let sealed, !row.isNull(sealed.column) else { return row.values }
        let binding = sealed.binding.map { row.values[$0] }
        var values = row.values
        values[sealed.column] = target.sealer.seal(try open(row, sealed: sealed, by: source.sealer), in: table, boundTo: binding)
        return values
    }

    private func open(_ row: Row, sealed: (column: Int, binding: [Int]), by sealer: Sealer) throws(StoreError) -> [UInt8] {
        do {
            return try sealer.open(try row.bytes(sealed.column), in: table, boundTo: sealed.binding.map { row.values[$0] })
        } catch {
            throw StoreError(
                code: .damaged,
                message: "a row of \(table.name) can't be decrypted, so it can't be moved: see waku-push admin check, and remove it first")
        }
    }

    /// Deletes the target's rows in pages: one transaction for millions of rows takes minutes.
    func clear() async throws {
        let ids = Query(table, [.id], order: [.ascending(.id)])
        let delete = Mutation(table, .delete(where: [.less(.id)]))
        while let next = try target.read(.find(ids(limit: 1, offset: 20_000)) { .done(try $0.first?.integer(0)) }) {
            try await target.commit(.change([delete(.integer(next))]))
        }
        try await target.commit(.change([Mutation(table, .delete(where: []))()]))
    }

    /// Whether both stores have the same rows with the same contents, up to an id.
    func isSame(through last: Int64) throws -> Bool {
        try digest(of: source, through: last) == digest(of: target, through: last)
    }

    private func digest(of store: any TransferableStore, through last: Int64) throws -> [UInt8] {
        var digest: [UInt8] = []
        try store.scan(rows(.integer(.min))) { row in
            guard try row.integer(0) <= last else { return false }
            var bytes = digest
            for (index, value) in row.values.enumerated() {
                let part: [UInt8]
                switch value {
                case .null: part = []
                case .integer(let integer): part = withUnsafeBytes(of: integer.bigEndian, Array.init)
                case .text(let text): part = Array(text.utf8)
                case .bytes(let stored):
                    if let sealed, sealed.column == index { part = try open(row, sealed: sealed, by: store.sealer) } else { part = stored }
                }
                bytes.append(value == .null ? 0 : 1)
                withUnsafeBytes(of: UInt32(part.count).bigEndian) { bytes += $0 }
                bytes += part
            }
            digest = SHA256.hash(bytes)
            return true
        }
        return digest
    }
}
