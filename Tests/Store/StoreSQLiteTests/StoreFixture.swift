import Storage
import StoreSQLite
import TestSupport
import WakuCrypto

/// A store with ``Records`` in its own folder.
struct StoreFixture {
    let folder: TemporaryFolder
    let storageKey = SymmetricKey.random()
    let store: SQLiteStore

    var path: String { DataFolder.databasePath(in: folder.path) }

    init() throws {
        folder = try TemporaryFolder()
        store = try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: [Records.part])
    }

    func reopened() throws -> SQLiteStore {
        try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: [Records.part])
    }
}

/// A folder on a disk that can be made to fail, and stores opened in it one after the other.
struct FaultyStoreFixture {
    let folder: TemporaryFolder
    let faults: StoreFaults
    let storageKey = SymmetricKey.random()

    init() throws {
        folder = try TemporaryFolder()
        faults = StoreFaults(in: folder.path)
    }

    func open() throws -> SQLiteStore {
        try SQLiteStore(folder: folder.path, storageKey: storageKey, parts: [Records.part])
    }
}

/// Named records with encrypted contents, and memos as a cache.
enum Records {
    static let name = Column("name", .bytes)
    static let version = Column("version", .integer)
    static let changedAt = Column("changed_at", .integer)
    static let sealed = Column("sealed", .bytes, isOptional: true)
    static let table = Table(
        "record", columns: [name, version, changedAt, sealed], unique: [name],
        sealed: SealedColumn(sealed, boundTo: [name, version], label: "records"))

    static let sealedMemo = Column("sealed", .bytes)
    static let memo = Table(
        "memo", columns: [sealedMemo], sealed: SealedColumn(cached: sealedMemo, boundTo: .text, label: "memos"))

    static let part = StorePart("records", tables: [table, memo])

    private static let find = Query(table, [.id, version, changedAt, sealed], where: [.equal(name)])
    private static let insert = Mutation(table, .insert([name, version, changedAt, sealed]))
    private static let update = Mutation(table, .update([version, changedAt, sealed], where: [.equal(.id), .equal(version)]))
    private static let count = Query(table, [.count])
    private static let insertMemo = Mutation(memo, .insert([sealedMemo]))
    private static let findMemos = Query(memo, [sealedMemo])

    /// A record's version, after opening its content; nil when there is none.
    static func version(of record: String, _ sealer: Sealer) -> StoreCommand<Int64?> {
        content(of: record, sealer).map { $0?.version }
    }

    static func content(of record: String, _ sealer: Sealer) -> StoreCommand<(version: Int64, content: [UInt8]?)?> {
        let key = Value.bytes(Array(record.utf8))
        return .find(find(key)) { rows in
            guard let row = rows.first else { return .done(nil) }
            let version = try row.integer(1)
            _ = try row.integer(2)
            return .done((version, try row.optionalBytes(3).map { try sealer.open($0, in: table, boundTo: [key, .integer(version)]) }))
        }
    }

    /// - Parameters:
    ///   - record: the name of the record.
    ///   - version: the version to store.
    ///   - content: nil for a record without one.
    ///   - sealer: the store's sealer.
    static func put(_ record: String, version: Int64 = 1, content: [UInt8]? = [1, 2, 3], _ sealer: Sealer) -> StoreCommand<Void> {
        let key = Value.bytes(Array(record.utf8))
        return .find(find(key)) { rows in
            let sealed = content.map { sealer.seal($0, in: table, boundTo: [key, .integer(version)]) } ?? .null
            guard let row = rows.first else { return .change([insert(key, .integer(version), .integer(1), sealed)]) }
            // Also replaces a damaged row.
            return .change([update(.integer(version), .integer(1), sealed, .integer(try row.integer(0)), row.values[1])])
        }
    }

    static func recordCount() -> StoreCommand<Int64> {
        .find(count()) { .done(try $0[0].integer(0)) }
    }

    static func addMemo(_ sealer: Sealer) -> StoreCommand<Void> {
        .change([insertMemo(sealer.seal([4, 5], in: memo, boundTo: [.text("memo")]))])
    }

    static func memos() -> StoreCommand<[[UInt8]]> {
        .find(findMemos()) { .done(try $0.map { try $0.bytes(0) }) }
    }
}

extension SQLiteStore {
    func put(_ record: String, version: Int64 = 1, content: [UInt8]? = [1, 2, 3]) async throws(StoreError) {
        try await commit(Records.put(record, version: version, content: content, sealer))
    }

    func version(of record: String) throws(StoreError) -> Int64? {
        try read(Records.version(of: record, sealer))
    }
}
