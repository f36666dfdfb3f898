import WakuCrypto

/// The requirements on engines whose contents can be moved to another engine: see ``StoreTransfer``.
package protocol TransferableStore: Store {
    /// The tables of all parts.
    var tables: [Table] { get }

    /// Refuses a database with parts that this program lacks, or with additions of a later version: for operations on the complete database, which
    /// would leave their rows out.
    func requireNothingAdded() throws(StoreError)

    /// The highest id that was ever assigned in each table that never reuses ids, by table name.
    func lastIDs() throws(StoreError) -> [String: Int64]

    /// Makes new rows get ids above the existing ones and above these.
    func continueIDs(after last: [String: Int64]) throws(StoreError)
}

/// Moves all rows from one store to another, of the same or another engine. No process may use either store meanwhile.
///
///     target: unfinished ─▶ rows, table by table ─▶ compared ─▶ next ids set ─▶ source: moved ─▶ target: ready
///
/// Both stores are marked with the random id of the move, so that a move that lacks only its last step is not confused with another one. Rows keep
/// their ids, which other tables and notifications refer to; contents are re-encrypted with the target's key. Rows of caches are not moved: the
/// target recomputes them.
/// An interrupted move can be repeated: it continues after the last row of each table, or starts the table over if its rows differ from the source,
/// which was used in between. At any moment at most one of the two stores lets a daemon start.
package struct StoreTransfer {
    package struct Progress: Sendable {
        package let table: String
        /// The number of rows in all tables.
        package let rows: Int
        package let total: Int
    }

    package struct Report: Sendable {
        /// Number of rows, by table.
        package var moved: [String: Int] = [:]
        /// Number of rows of caches that were not moved, by table.
        package var leftBehind: [String: Int] = [:]
    }

    private static let property = "transfer"
    /// Prefix of properties that are not moved: the salt and check of the storage key, and the state of its rotation.
    private static let ownProperties = "storage key "
    private static let page = 2000

    private let source: any TransferableStore
    private let target: any TransferableStore
    private let targetName: String
    private let report: (Progress) -> Void

    /// - Parameters:
    ///   - source: the store to read, opened with the node's key.
    ///   - target: opened with the node's key; empty, or holding the rows of an interrupted or earlier move.
    ///   - targetName: the name of the target for the error message of a later attempt to use the source.
    ///   - report: called after each page.
    package init(
        from source: any TransferableStore, to target: any TransferableStore, named targetName: String,
        report: @escaping (Progress) -> Void = { _ in }
    ) {
        (self.source, self.target, self.targetName, self.report) = (source, target, targetName, report)
    }

    /// The reason why no daemon may use a store; nil when one may.
    package static func obstacle() -> StoreCommand<String?> {
        mark().map { mark in
            switch mark {
            case nil: nil
            case .unfinished: "a move into this store was interrupted: repeat waku-push admin migrate, which continues it"
            case .moved(_, let name): "this store was moved to \(name): use that one, or move it back with admin migrate"
            }
        }
    }

    /// - Throws: `unsuitable` if no daemon may use the store, for commands that would change it.
    package static func requireNoObstacle(in store: any Store) throws(StoreError) {
        if let obstacle = try store.read(obstacle()) { throw StoreError(code: .unsuitable, message: obstacle) }
    }

    /// The mark in a store that takes part in a move.
    private enum Mark: Hashable {
        case unfinished(id: [UInt8])
        case moved(id: [UInt8], to: String)

        static let idByteCount = 16

        var id: [UInt8] {
            switch self {
            case .unfinished(let id), .moved(let id, _): id
            }
        }

        /// The id, then the target's name, which is empty in the target itself.
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

    /// Runs the move. Blocks during reads.
    ///
    /// - Throws: ``StoreError``; `unsuitable` when the target has rows of its own or the source is not a whole store, `damaged` when a row
    ///   can't be opened.
    package func run() async throws -> Report {
        for store in [source, target] { try store.requireNothingAdded() }
        let id = try await prepare()
        let counts = try source.tables.map { table in (table, try source.read(Self.count(of: table))) }
        let caches = counts.filter(\.0.isCache)
        let kept = counts.filter { !$0.0.isCache }
        // Rows of an earlier move may belong to registrants that have left since.
        for (cache, _) in caches { try await TableCopy(cache, from: source, to: target).clear() }
        let total = kept.reduce(0) { $0 + $1.1 }
        var done = 0
        for (table, count) in kept {
            let copy = TableCopy(table, from: source, to: target)
            try await copy.run(page: Self.page) { report(Progress(table: table.name, rows: done + $0, total: total)) }
            guard try copy.isSame(through: .max) else {
                throw StoreError(code: .damaged, message: "\(table.name) is not the same in both stores: is one of them in use?")
            }
            done += count
        }
        let properties = try Self.movedProperties(of: source)
        // Those of an earlier move that the source has removed since.
        let outdated = try Self.movedProperties(of: target).map(\.name).filter { name in !properties.contains { $0.name == name } }
        let keys = target.sealer.takingOver(source.sealer).keyChanges
        try await target.commit(
            .change(outdated.map { Properties.remove($0) } + properties.map { Properties.set($0.name, to: $0.value) } + keys))
        try target.continueIDs(after: try source.lastIDs())
        try await source.commit(.change([Properties.set(Self.property, to: Mark.moved(id: id, to: targetName).bytes)]))
        try await target.commit(.change([Properties.remove(Self.property)]))
        func byName(_ counts: [(Table, Int)]) -> [String: Int] { Dictionary(uniqueKeysWithValues: counts.map { ($0.0.name, $0.1) }) }
        return Report(moved: byName(kept), leftBehind: byName(caches))
    }

    /// - Returns: the id of the move.
    private func prepare() async throws -> [UInt8] {
        let (left, found) = (try source.read(Self.mark()), try target.read(Self.mark()))
        let isContinued = if case .unfinished = found { true } else { false }
        if let left {
            // Everything except the last step is done.
            if case .moved = left, isContinued, left.id == found?.id { return left.id }
            throw StoreError(code: .unsuitable, message: try source.read(Self.obstacle()) ?? "this store can't be moved")
        }
        if isContinued, let found { return found.id }
        let copies = target.tables.filter { !$0.isCache }.map { TableCopy($0, from: source, to: target) }
        if found == nil {
            for copy in copies where try target.read(Self.count(of: copy.table)) > 0 {
                throw StoreError(
                    code: .unsuitable, message: "\(targetName) has rows already (\(copy.table.name)): nothing was moved; give an empty one")
            }
        }
        let id = randomBytes(Mark.idByteCount)
        try await target.commit(.change([Properties.set(Self.property, to: Mark.unfinished(id: id).bytes)]))
        // The mark of an earlier move into this store.
        if found != nil {
            for copy in copies { try await copy.clear() }
        }
        return id
    }

    private static func movedProperties(of store: any Store) throws -> [(name: String, value: [UInt8])] {
        try store.read(Properties.all()).filter { name, _ in name != property && !name.hasPrefix(ownProperties) }
    }

    private static func count(of table: Table) -> StoreCommand<Int> {
        .find(Query(table, [.count])()) { .done(Int(try $0[0].integer(0))) }
    }
}
