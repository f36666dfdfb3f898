import Foundation
import GRDB
import Synchronization
public import WakuCrypto

/// Registrations, tombstones, the outbox and what was answered: one SQLite file in WAL mode with `synchronous=FULL`.
///
/// What a ``commit(_:)`` changed is on disk when it returns. Several processes may use the file at once.
public final class Store: Sendable {
    private let pool: DatabasePool
    private let rows: SealedRows
    private let queue: CommitQueue
    /// Why the last commit failed; nil when it did not.
    private let lastFailure = Mutex<String?>(nil)

    /// Opens the database, making it and bringing it up to date first.
    ///
    /// - Throws: ``StoreError``
    public init(folder path: String, storageKey: SymmetricKey) throws(StoreError) {
        rows = SealedRows(key: storageKey)
        pool = try Self.open(DataFolder.databasePath(in: path), mayCreate: true)
        queue = CommitQueue(pool: pool)
        do {
            guard try !pool.read({ try Schema.migrator.hasBeenSuperseded($0) }) else {
                throw StoreError(code: .newer, message: "the database in \(path) was made by a newer waku-push: run that version")
            }
            try Schema.migrator.migrate(pool)
            try setDurability()
        } catch {
            throw Self.explain(error, path)
        }
        try checkKey(path)
    }

    /// The database beside a running daemon, or without one. It must exist.
    ///
    /// - Parameter storageKey: nil to do without the contents: then nothing sealed can be opened.
    /// - Throws: ``StoreError``
    public init(existing path: String, storageKey: SymmetricKey?) throws(StoreError) {
        rows = SealedRows(key: storageKey ?? SymmetricKey.random())
        pool = try Self.open(DataFolder.databasePath(in: path), mayCreate: false)
        queue = CommitQueue(pool: pool)
        do {
            guard try pool.read({ try Schema.migrator.hasCompletedMigrations($0) }) else {
                throw StoreError(
                    code: .damaged, message: "the database in \(path) is of an older version: start the daemon once to bring it up to date")
            }
            try setDurability()
        } catch {
            throw Self.explain(error, path)
        }
        if storageKey != nil { try checkKey(path) }
    }

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
        let job = CommitQueue.Job(
            run: { [rows] db in
                try work(StoreTransaction(db: db, rows: rows))
                return {}
            },
            fail: { [self] error in lastFailure.withLock { $0 = Self.explain(error, "the data folder").message } })
        queue.add([job])
    }

    /// Runs `work` for each item, in order, and returns once all is durable. Each item succeeds or fails on its own.
    public func commitEach<Item: Sendable, T: Sendable>(
        _ items: [Item], _ work: @escaping @Sendable (StoreTransaction, Item) throws -> T
    ) async -> [Result<T, StoreError>] {
        guard !items.isEmpty else { return [] }
        let results: [Result<T, any Error>] = await withCheckedContinuation { continuation in
            let latch = Latch<T>(count: items.count) { continuation.resume(returning: $0) }
            let jobs = items.enumerated().map { index, item in
                CommitQueue.Job(
                    run: { [rows] db in
                        let value = try work(StoreTransaction(db: db, rows: rows), item)
                        return { latch.set(index, .success(value)) }
                    },
                    fail: { latch.set(index, .failure($0)) })
            }
            queue.add(jobs)
        }
        let explained = results.map { result in result.mapError { Self.explain($0, "the data folder") } }
        let failure = explained.lazy.compactMap { result -> StoreError? in
            guard case .failure(let error) = result else { return nil }
            return error
        }.first
        lastFailure.withLock { $0 = failure?.message }
        return explained
    }

    /// Collects results until all are there.
    private final class Latch<T: Sendable>: Sendable {
        private let results: Mutex<(values: [Result<T, any Error>?], missing: Int)>
        private let complete: @Sendable ([Result<T, any Error>]) -> Void

        init(count: Int, complete: @escaping @Sendable ([Result<T, any Error>]) -> Void) {
            results = Mutex((Array(repeating: nil, count: count), count))
            self.complete = complete
        }

        func set(_ index: Int, _ result: Result<T, any Error>) {
            let all = results.withLock { state -> [Result<T, any Error>]? in
                state.values[index] = result
                state.missing -= 1
                return state.missing == 0 ? state.values.compactMap { $0 } : nil
            }
            if let all { complete(all) }
        }
    }

    /// Looks at a snapshot, on the calling thread.
    public func read<T>(_ work: (StoreTransaction) throws -> T) throws(StoreError) -> T {
        do {
            return try pool.read { try work(StoreTransaction(db: $0, rows: rows)) }
        } catch {
            throw Self.explain(error, "the data folder")
        }
    }

    /// Why commits fail at present; nil when they don't.
    public var failure: String? { lastFailure.withLock { $0 } }

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
        try pool.close()
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
        configuration.busyMode = .timeout(5)
        configuration.journalMode = .wal
        do {
            return try DatabasePool(path: path, configuration: configuration)
        } catch {
            throw explain(error, path)
        }
    }

    /// GRDB's pool sets NORMAL, under which a commit may be lost when the machine stops.
    private func setDurability() throws {
        try pool.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA synchronous = FULL")
            guard try Int.fetchOne(db, sql: "PRAGMA synchronous") == 2 else {
                throw StoreError(code: .unavailable, message: "SQLite does not take synchronous=FULL")
            }
        }
    }

    private func checkKey(_ path: String) throws(StoreError) {
        let name = "storage key check"
        let fits: Bool
        do {
            fits = try pool.write { db in
                let transaction = StoreTransaction(db: db, rows: rows)
                if let check = try transaction.property(name) { return rows.fits(check) }
                try transaction.setProperty(name, rows.sealCheck())
                return true
            }
        } catch {
            throw Self.explain(error, path)
        }
        guard fits else {
            throw StoreError(
                code: .otherIdentity,
                message: "the database in \(path) belongs to another identity: use that one's key file, or another data folder")
        }
    }

    private static func explain(_ error: any Error, _ place: String) -> StoreError {
        switch error {
        case let error as StoreError:
            return error
        case let error as DatabaseError where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode):
            return StoreError(code: .damaged, message: "the database in \(place) is damaged: restore a backup, or move the file away")
        case let error as DatabaseError where [.SQLITE_PERM, .SQLITE_READONLY, .SQLITE_AUTH].contains(error.resultCode):
            return StoreError(code: .permission, message: "the database in \(place) can't be written to: give this user access to it")
        case let error as DatabaseError where error.resultCode == .SQLITE_CANTOPEN:
            return StoreError(code: .cannotCreate, message: "the database in \(place) can't be opened: is the folder there and accessible?")
        case let error as DatabaseError where error.resultCode == .SQLITE_FULL:
            return StoreError(code: .unavailable, message: "no room for the database in \(place): free some disk space")
        case let error as DatabaseError:
            // The code alone: a message of SQLite's may quote what was to be stored.
            return StoreError(
                code: .unavailable, message: "the database in \(place) failed with SQLite code \(error.extendedResultCode.rawValue)")
        default:
            return StoreError(code: .damaged, message: "a row of the database in \(place) can't be read: it was altered")
        }
    }
}
