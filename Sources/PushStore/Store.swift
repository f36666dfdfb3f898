import Foundation
import GRDB
import Synchronization
public import WakuCrypto

/// Registrations, tombstones, the outbox and what was answered: one SQLite file in WAL mode with `synchronous=FULL`.
///
/// What a ``commit(_:)`` changed is on disk when it returns. Several processes may use the file at once.
public final class Store: Sendable {
    let pool: DatabasePool
    let rows: SealedRows
    let queue: CommitQueue
    let monitor: StoreMonitor
    let readers = ReaderThreads()

    /// Opens the database, making it and bringing it up to date first.
    ///
    /// - Throws: ``StoreError``
    public init(folder path: String, storageKey: SymmetricKey) throws(StoreError) {
        let pool = try Self.open(DataFolder.databasePath(in: path), mayCreate: true)
        self.pool = pool
        monitor = StoreMonitor()
        queue = CommitQueue(pool: pool) { [monitor] in monitor.note($0) }
        do {
            guard try !pool.read({ try Schema.migrator.hasBeenSuperseded($0) }) else {
                throw StoreError(newerIn: path)
            }
            try Schema.migrator.migrate(pool)
            try Self.setUpWriter(pool)
            rows = try pool.read { try SealedRows(storageKey: storageKey, in: $0) }
        } catch {
            throw StoreError(explaining: error, in: path)
        }
        try checkKey(path)
    }

    /// The database beside a running daemon, or without one. It must exist.
    ///
    /// - Parameter storageKey: nil to do without the contents: then nothing sealed can be opened.
    /// - Throws: ``StoreError``
    public init(existing path: String, storageKey: SymmetricKey?) throws(StoreError) {
        let pool = try Self.open(DataFolder.databasePath(in: path), mayCreate: false)
        self.pool = pool
        monitor = StoreMonitor()
        queue = CommitQueue(pool: pool) { [monitor] in monitor.note($0) }
        do {
            guard try pool.read({ try Schema.migrator.hasCompletedMigrations($0) }) else {
                throw StoreError(
                    code: .damaged, message: "the database in \(path) is of an older version: start the daemon once to bring it up to date")
            }
            try Self.setUpWriter(pool)
            rows = try pool.read { try SealedRows(storageKey: storageKey ?? SymmetricKey.random(), in: $0) }
        } catch {
            throw StoreError(explaining: error, in: path)
        }
        if storageKey != nil { try checkKey(path) }
    }

    /// What the key of the rows comes from: see ``StorageKeyRotation``.
    public static func storageKey(of identity: PrivateKey) -> SymmetricKey {
        identity.derivedKey(purpose: "waku-push storage 1")
    }

    /// Runs `work` in the next transaction, which it may share with others, and returns once that is durable. If it fails, nothing that this
    /// work did is kept.
    public func commit<T: Sendable>(_ work: @escaping @Sendable (StoreTransaction) throws -> T) async throws(StoreError) -> T {
        let results = await commitEach([()]) { transaction, _ in try work(transaction) }
        return try results[0].get()
    }

    /// Runs `work` in a transaction after all that was asked for before, and does not wait for it. For what may be lost in a crash.
    public func enqueue(_ work: @escaping @Sendable (StoreTransaction) throws -> Void) {
        queue.add(Batch(items: [()], store: self, work: { transaction, _ in try work(transaction) }) { _ in })
    }

    /// Runs `work` for each item, in order, and returns once all is durable. Each item succeeds or fails on its own.
    public func commitEach<Item: Sendable, T: Sendable>(
        _ items: [Item], _ work: @escaping @Sendable (StoreTransaction, Item) throws -> T
    ) async -> [Result<T, StoreError>] {
        await withCheckedContinuation { continuation in
            submit(items, work) { continuation.resume(returning: $0) }
        }
    }

    /// As ``commitEach(_:_:)``, without waiting: the items have their place in the order of commits when this returns.
    ///
    /// - Parameter completion: gets a result for each item once all is durable. Runs on the writer's thread: it must be short.
    public func submit<Item: Sendable, T: Sendable>(
        _ items: [Item], _ work: @escaping @Sendable (StoreTransaction, Item) throws -> T,
        completion: @escaping @Sendable ([Result<T, StoreError>]) -> Void
    ) {
        queue.add(Batch(items: items, store: self, work: work, completion: completion))
    }

    /// Calls `body` once all that was asked for before is durable or has failed: at once, or on the writer's thread, where it must be short.
    public func afterCommits(_ body: @escaping @Sendable () -> Void) {
        if queue.isIdle { return body() }
        submit([Int](), { _, _ in }) { _ in body() }
    }

    /// Returns once the writer has done all that was asked for before: it is durable or has failed.
    public func settle() async {
        _ = await commitEach([Int]()) { _, _ in }
    }

    private final class Batch<Item: Sendable, T: Sendable>: CommitBatch {
        private let items: [Item]
        private let store: Store
        private let work: @Sendable (StoreTransaction, Item) throws -> T
        private let completion: @Sendable ([Result<T, StoreError>]) -> Void
        private let results: Mutex<[Result<T, StoreError>?]>

        init(
            items: [Item], store: Store, work: @escaping @Sendable (StoreTransaction, Item) throws -> T,
            completion: @escaping @Sendable ([Result<T, StoreError>]) -> Void
        ) {
            self.items = items
            self.store = store
            self.work = work
            self.completion = completion
            results = Mutex(Array(repeating: nil, count: items.count))
        }

        var count: Int { items.count }

        func run(_ index: Int, _ db: Database) throws {
            let value = try work(StoreTransaction(db: db, rows: store.rows), items[index])
            results.withLock { $0[index] = .success(value) }
        }

        func fail(_ index: Int, _ error: any Error) {
            let error = StoreError(explaining: error)
            results.withLock { $0[index] = .failure(error) }
        }

        func complete() {
            let results = results.withLock { $0.compactMap { $0 } }
            completion(results)
        }
    }

    /// Looks at a snapshot, on one of the store's own threads.
    public func fetch<T: Sendable>(_ work: @escaping @Sendable (StoreTransaction) throws -> T) async throws(StoreError) -> T {
        let result: Result<T, StoreError> = await withCheckedContinuation { continuation in
            onReader { [self] in
                do throws(StoreError) {
                    continuation.resume(returning: .success(try read(work)))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }

    /// Runs `body`, which may ``read(_:)``, on one of the store's own threads.
    public func onReader(_ body: @escaping @Sendable () -> Void) {
        readers.run(body)
    }

    /// Looks at a snapshot, on the calling thread, which is held up for as long as the disk is: never one of the cooperative pool's.
    public func read<T>(_ work: (StoreTransaction) throws -> T) throws(StoreError) -> T {
        do {
            return try pool.read { try work(StoreTransaction(db: $0, rows: rows)) }
        } catch {
            throw monitor.readFailed(error)
        }
    }

    /// Bytes of the database and its log.
    public var byteCount: Int {
        ["", "-wal"].reduce(0) { sum, suffix in
            let attributes = try? FileManager.default.attributesOfItem(atPath: pool.path + suffix)
            return sum + (attributes?[.size] as? Int ?? 0)
        }
    }

    /// Finishes what waits, moves the log into the database and closes both.
    public func close() throws {
        queue.finish()
        // The last connection that closes is one that only reads, and moves nothing.
        let moved = Result { try pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) } }
        try pool.close()
        try moved.get()
    }

    // MARK: Opening

    private static func open(_ path: String, mayCreate: Bool) throws(StoreError) -> DatabasePool {
        let exists = FileManager.default.fileExists(atPath: path)
        guard exists || mayCreate else {
            throw StoreError(code: .missing, message: "there is no database at \(path): has the daemon run with this data folder?")
        }
        if !exists {
            // SQLite gives its other files the mode of this one.
            let file = Foundation.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
            guard file >= 0 else {
                throw StoreError(code: .permission, message: "database \(path) can't be made: give this user access to the folder")
            }
            Foundation.close(file)
        }
        var configuration = Configuration()
        // Who asks waits for 3 s.
        configuration.busyMode = .timeout(2)
        configuration.journalMode = .wal
        do {
            return try DatabasePool(path: path, configuration: configuration)
        } catch {
            throw StoreError(explaining: error, in: path)
        }
    }

    /// Of the connection that writes. GRDB's pool sets NORMAL, under which a commit may be lost when the machine stops.
    private static func setUpWriter(_ pool: DatabasePool) throws {
        try pool.writeWithoutTransaction { db in
            try db.execute(
                sql: """
                    PRAGMA synchronous = FULL;
                    -- What is deleted or replaced is overwritten, whatever SQLite was compiled with.
                    PRAGMA secure_delete = ON;
                    -- KiB. Where rows go is spread over the indexes: with SQLite's 2 MB most pages are read for each transaction.
                    PRAGMA cache_size = -16384;
                    -- Pages, 16 MiB: a page that many transactions change is moved into the database less often.
                    PRAGMA wal_autocheckpoint = 4096;
                    """)
            guard try Int.fetchOne(db, sql: "PRAGMA synchronous") == 2 else {
                throw StoreError(code: .unavailable, message: "SQLite does not take synchronous=FULL")
            }
            guard try Int.fetchOne(db, sql: "PRAGMA secure_delete") == 1 else {
                throw StoreError(code: .unavailable, message: "SQLite does not take secure_delete=ON")
            }
        }
    }

    private func checkKey(_ path: String) throws(StoreError) {
        let fits: Bool
        do {
            fits = try pool.write { db in
                let transaction = StoreTransaction(db: db, rows: rows)
                if let fits = try rows.fit(db) { return fits }
                try transaction.setProperty(SealedRows.checkProperty, rows.sealCheck())
                return true
            }
        } catch {
            throw StoreError(explaining: error, in: path)
        }
        guard fits else { throw StoreError(otherIdentityIn: path) }
    }
}
