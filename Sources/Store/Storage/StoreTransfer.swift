import WakuCrypto

/// What an engine tells and takes so that a store can be moved to another one: see ``StoreTransfer``.
package protocol TransferableStore: Store {
    /// Of all parts.
    var tables: [Table] { get }

    /// By the tables' names: the highest id that a row ever had, where ids of deleted rows are not assigned again.
    ///
    /// - Throws: ``StoreError``
    func lastIDs() throws(StoreError) -> [String: Int64]

    /// New rows get higher ids than the rows that there are, and than these.
    ///
    /// - Throws: ``StoreError``
    func continueIDs(after last: [String: Int64]) throws(StoreError)
}

/// Moves everything from one store to another, whatever their engines. Nobody may use either meanwhile.
///
///     target: unfinished ─▶ rows, table by table ─▶ compared ─▶ ids go on ─▶ source: moved ─▶ target: ready
///
/// The marks of both have the random id of the move, so that one that lacks its last step alone is not taken for another's.
/// Rows keep their ids, since rows of other tables and ids of notifications have them; contents are encrypted anew with the target's key.
/// An interrupted move is repeated: it goes on after the last row of each table, or from the beginning of those that are not the same as
/// the source's any more, because that was used in between. At every moment at most one of the two lets a daemon start.
package struct StoreTransfer {
    package struct Progress: Sendable {
        package let table: String
        /// Of all tables.
        package let rows: Int
        package let total: Int
    }

    private static let property = "transfer"
    /// Of properties that each store has for itself: its key's salt and check, and a rotation of it.
    private static let ownProperties = "storage key "
    private static let page = 2000

    private let source: any TransferableStore
    private let target: any TransferableStore
    private let targetName: String
    private let report: (Progress) -> Void

    /// - Parameters:
    ///   - source: opened with the node's key, as is the target.
    ///   - target: without rows, or what an interrupted or earlier move made.
    ///   - targetName: of the target, for whoever uses the source later.
    ///   - report: is told after each page.
    package init(
        from source: any TransferableStore, to target: any TransferableStore, named targetName: String,
        report: @escaping (Progress) -> Void = { _ in }
    ) {
        (self.source, self.target, self.targetName, self.report) = (source, target, targetName, report)
    }

    /// Why no daemon may use a store; nil when one may.
    package static func obstacle() -> StoreCommand<String?> {
        mark().map { mark in
            switch mark {
            case nil: nil
            case .unfinished: "a move into this store was interrupted: repeat waku-push admin migrate, which continues it"
            case .moved(_, let name): "this store was moved to \(name): use that one, or move it back with admin migrate"
            }
        }
    }

    /// What a store says of its part in a move.
    private enum Mark: Hashable {
        case unfinished(id: [UInt8])
        case moved(id: [UInt8], to: String)

        static let idByteCount = 16

        var id: [UInt8] {
            switch self {
            case .unfinished(let id), .moved(let id, _): id
            }
        }

        /// The id, then the name of the target, which is empty in the target itself.
        var bytes: [UInt8] {
            switch self {
            case .unfinished(let id): id
            case .moved(let id, let name): id + Array(name.utf8)
            }
        }

        init(_ bytes: [UInt8]) {
            let (id, name) = (Array(bytes.prefix(Self.idByteCount)), bytes.dropFirst(Self.idByteCount))
            self = name.isEmpty ? .unfinished(id: id) : .moved(id: id, to: String(decoding: name, as: UTF8.self))
        }
    }

    private static func mark() -> StoreCommand<Mark?> {
        Properties.property(property).map { $0.map(Mark.init) }
    }

    /// Blocks while it reads.
    ///
    /// - Throws: ``StoreError``; `unsuitable` when the target has rows of its own or the source is not a whole store, `damaged` when a row
    ///   can't be opened.
    /// - Returns: the number of rows, by table.
    package func run() async throws -> [String: Int] {
        let id = try await prepare()
        let counts = try source.tables.map { table in (table, try source.read(Self.count(of: table))) }
        let total = counts.reduce(0) { $0 + $1.1 }
        var done = 0
        for (table, count) in counts {
            let copy = TableCopy(table, from: source, to: target)
            try await copy.run(page: Self.page) { report(Progress(table: table.name, rows: done + $0, total: total)) }
            guard try copy.isSame(through: .max) else {
                throw StoreError(code: .damaged, message: "\(table.name) is not the same in both stores: is one of them in use?")
            }
            done += count
        }
        let own = [Self.property, Self.ownProperties]
        let properties = try source.read(Properties.all()).filter { name, _ in !own.contains { name.hasPrefix($0) } }
        try await target.commit(.change(properties.map { Properties.set($0.name, to: $0.value) }))
        try target.continueIDs(after: try source.lastIDs())
        try await source.commit(.change([Properties.set(Self.property, to: Mark.moved(id: id, to: targetName).bytes)]))
        try await target.commit(.change([Properties.remove(Self.property)]))
        return Dictionary(uniqueKeysWithValues: counts.map { ($0.0.name, $0.1) })
    }

    /// - Returns: the id of the move.
    private func prepare() async throws -> [UInt8] {
        let (left, found) = (try source.read(Self.mark()), try target.read(Self.mark()))
        let isContinued = if case .unfinished = found { true } else { false }
        if let left {
            // Moved, but for the last step.
            if case .moved = left, isContinued, left.id == found?.id { return left.id }
            throw StoreError(code: .unsuitable, message: try source.read(Self.obstacle()) ?? "this store can't be moved")
        }
        if isContinued, let found { return found.id }
        let copies = target.tables.map { TableCopy($0, from: source, to: target) }
        if found == nil {
            for copy in copies where try target.read(Self.count(of: copy.table)) > 0 {
                throw StoreError(
                    code: .unsuitable, message: "\(targetName) has rows already (\(copy.table.name)): nothing was moved; give an empty one")
            }
        }
        let id = randomBytes(Mark.idByteCount)
        try await target.commit(.change([Properties.set(Self.property, to: Mark.unfinished(id: id).bytes)]))
        // Of a store that was itself moved before.
        if found != nil {
            for copy in copies { try await copy.clear() }
        }
        return id
    }

    private static func count(of table: Table) -> StoreCommand<Int> {
        .find(Query(table, [.count])()) { .done(Int(try $0[0].integer(0))) }
    }
}

/// The rows of a table on their way from one store to another.
private struct TableCopy {
    let table: Table
    private let source: any TransferableStore
    private let target: any TransferableStore
    private let columns: [Column]
    private let rows: Query
    private let write: Mutation
    /// Of the encrypted column and of those that it is bound to, in `columns`.
    private let sealed: (column: Int, binding: [Int])?

    init(_ table: Table, from source: any TransferableStore, to target: any TransferableStore) {
        (self.table, self.source, self.target) = (table, source, target)
        let columns = [.id] + table.columns
        self.columns = columns
        rows = Query(table, columns, where: [.atLeast(.id)], order: [.ascending(.id)])
        write = Mutation(table, .upsert(columns))
        sealed = table.sealed.flatMap { sealed in
            columns.firstIndex { $0.name == sealed.column.name }.map { column in
                (column, sealed.binding.compactMap { bound in columns.firstIndex { $0.name == bound.name } })
            }
        }
    }

    /// Copies the rows behind those that the target has already; all, if these are not the source's.
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
            let found = try source.read(.find(rows(.integer(next), limit: page)) { .done($0) })
            guard let end = try found.last?.integer(0) else { return }
            try await target.commit(.change(try found.map { write.change(try moved($0)) }))
            done += found.count
            report(done)
            guard found.count == page, end < .max else { return }
            next = end + 1
        }
    }

    /// A row's values, with its content as the target encrypts it.
    private func moved(_ row: Row) throws -> [Value] {
        guard let sealed, !row.isNull(sealed.column) else { return row.values }
        let binding = sealed.binding.map { row.values[$0] }
        var values = row.values
        values[sealed.column] = target.sealer.seal(try open(row, sealed, source.sealer), boundTo: binding)
        return values
    }

    private func open(_ row: Row, _ sealed: (column: Int, binding: [Int]), _ sealer: Sealer) throws(StoreError) -> [UInt8] {
        do {
            return try sealer.open(try row.bytes(sealed.column), boundTo: sealed.binding.map { row.values[$0] })
        } catch {
            throw StoreError(
                code: .damaged,
                message: "a row of \(table.name) can't be decrypted, so it can't be moved: see waku-push admin check, and remove it first")
        }
    }

    /// In pages: a transaction that deletes millions of rows takes minutes.
    func clear() async throws {
        let ids = Query(table, [.id], order: [.ascending(.id)])
        let delete = Mutation(table, .delete(where: [.less(.id)]))
        while let next = try target.read(.find(ids(limit: 1, offset: 20_000)) { .done(try $0.first?.integer(0)) }) {
            try await target.commit(.change([delete(.integer(next))]))
        }
        try await target.commit(.change([Mutation(table, .delete(where: []))()]))
    }

    /// Whether both stores have the same rows up to an id, with the same contents.
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
                    if let sealed, sealed.column == index { part = try open(row, sealed, store.sealer) } else { part = stored }
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
