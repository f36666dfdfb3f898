import CSQLite
import Foundation
import GRDB
package import Storage
import Synchronization
package import WakuCrypto

/// A ``Store`` in one SQLite file in WAL mode with `synchronous=FULL`. Several processes may use the file at once.
///
/// One writer: all waiting commands become one transaction, in which each command reads, decides and changes before the next one does. So the rows
/// that a command depends on can't change meanwhile.
package final class SQLiteStore: Store {
    let pool: DatabasePool
    /// The database file.
    let path: String
    /// The file can't be written: its folder, or its file system, is read-only.
    private let isReadOnly: Bool
    package let sealer: Sealer
    let schema: Schema
    let queue: SQLiteCommitQueue
    let copier: LogCopier
    let monitor: StoreMonitor
    let readers = ReaderThreads()
    let progress: ReadProgress
    let files: NamedFiles
    /// A lost file of the database, by its suffix; see ``checkFiles()``.
    let loss = Mutex<(suffix: String, error: StoreError)?>(nil)

    /// Opens the database, after creating and migrating it if necessary.
    ///
    /// - Parameters:
    ///   - path: the data folder.
    ///   - storageKey: see ``Storage/Sealer/storageKey(of:)``.
    ///   - parts: all parts that have tables in the database.
    /// - Throws: `StoreError`
    package convenience init(folder path: String, storageKey: SymmetricKey, parts: [StorePart]) throws(StoreError) {
        try self.init(opening: path, mayCreate: true, storageKey: storageKey, schema: Schema(parts: parts)) { schema, pool in
            try schema.migrate(pool, in: path)
        }
    }

    /// Opens an existing database, with or without a daemon running on it; only for reading if it can't be written.
    ///
    /// - Parameters:
    ///   - path: the data folder.
    ///   - storageKey: nil to open the store without its key: sealed contents can't be opened then.
    ///   - parts: all parts that have tables in the database.
    ///   - mayBeOlder: whether to open a database of an older version, too: for a backup, which reads no table of it. Nothing is written to it.
    /// - Throws: `StoreError`
    package convenience init(
        existing path: String, storageKey: SymmetricKey?, parts: [StorePart], mayBeOlder: Bool = false
    ) throws(StoreError) {
        try self.init(
            opening: path, mayCreate: false, storesKeyCheck: !mayBeOlder, storageKey: storageKey, schema: Schema(parts: parts)
        ) { schema, pool in
            guard try !pool.read(schema.isNewer) else { throw StoreError(newerIn: path) }
            guard try mayBeOlder || pool.read(schema.isComplete) else {
                throw StoreError(
                    code: .damaged,
                    message:
                        "the database in \(path) is of an older version: make a backup (waku-push admin backup), then start the daemon once to bring it up to date"
                )
            }
        }
    }

    private init(
        opening path: String, mayCreate: Bool, storesKeyCheck: Bool = true, storageKey: SymmetricKey?, schema: Schema,
        _ prepare: (Schema, DatabasePool) throws -> Void
    ) throws(StoreError) {
        let file = DataFolder.databasePath(in: path)
        let isReadOnly = !mayCreate && DatabaseFile.isReadOnly(file)
        let progress = ReadProgress()
        let pool = try Self.open(file, mayCreate: mayCreate, isReadOnly: isReadOnly, progress)
        (self.path, self.isReadOnly, self.pool, self.progress) = (file, isReadOnly, pool, progress)
        self.schema = schema
        monitor = StoreMonitor()
        copier = LogCopier(path: file)
        queue = SQLiteCommitQueue(pool: pool, copier: copier) { [monitor] in monitor.note($0) }
        do {
            try prepare(schema, pool)
            if !isReadOnly { try Self.setUpWriter(pool) }
            sealer = try pool.read { try Sealer(storageKey: storageKey ?? SymmetricKey.random(), in: $0) }
            files = NamedFiles(of: file)
        } catch {
            throw StoreError(explaining: error, in: path)
        }
        if storageKey != nil { try checkKey(path, isStored: storesKeyCheck && !isReadOnly) }
    }

    // MARK: Commands

    package func submit<Outcome>(
        _ commands: [StoreCommand<Outcome>], completion: @escaping @Sendable ([Result<Outcome, StoreError>]) -> Void
    ) {
        queue.add(CommandBatch(commands, explain: { StoreError(explaining: $0) }, completion: completion))
    }

    package func afterCommits(_ body: @escaping @Sendable () -> Void) {
        if queue.isIdle { return body() }
        submit([StoreCommand<Void>]()) { _ in body() }
    }

    // MARK: Reading

    package func onReader(_ body: @escaping @Sendable () -> Void) {
        readers.run(body)
    }

    package func readEach<Outcome>(_ commands: [StoreCommand<Outcome>]) throws(StoreError) -> [Result<Outcome, StoreError>] {
        let results: [Result<Outcome, any Error>]
        try requireFiles()
        do {
            results = try pool.read { db in
                try commands.map { command in
                    do {
                        let (changes, outcome) = try StoreSession(db: db).decide(command)
                        guard changes.isEmpty else { throw StoreError(code: .unavailable, message: "a command to be read changes rows") }
                        return .success(outcome([]))
                    } catch let error as DatabaseError where !db.isInsideTransaction {
                        // SQLite ended the snapshot.
                        throw error
                    } catch {
                        return .failure(error)
                    }
                }
            }
        } catch {
            throw monitor.readFailed(error)
        }
        return results.map { $0.mapError(monitor.readFailed) }
    }

    package func scan(_ read: Read, _ visit: (Storage.Row) throws -> Bool) throws(StoreError) {
        try requireFiles()
        do {
            try pool.read { try StoreSession(db: $0).scan(read, visit) }
        } catch {
            throw monitor.readFailed(error)
        }
    }

    // MARK: Files

    /// The size of the database and its log, in bytes.
    package var byteCount: Int {
        ["", "-wal"].reduce(0) { sum, suffix in
            let attributes = try? FileManager.default.attributesOfItem(atPath: path + suffix)
            return sum + (attributes?[.size] as? Int ?? 0)
        }
    }

    /// Completes waiting commands, checkpoints the log and closes the database. If a copy of the log was interrupted, which takes too long for a stop, the
    /// next start has the log.
    package func close() throws {
        queue.finish()
        // A file may have been lost since the last maintenance.
        if !isReadOnly, let lost = checkFiles() { monitor.checkpointed(lost) }
        copier.close()
        // The last connection to close is read-only and does not checkpoint.
        let isEmptied = !isReadOnly && (!copier.wasInterrupted || queue.refusal != nil)
        let moved = Result { if isEmptied { try pool.writeWithoutTransaction(emptyLog) } }
        try pool.close()
        try moved.get()
    }

    /// Leaves the log to the processes that use it. To wait for them would keep them from writing.
    private func emptyLog(_ db: Database) throws {
        try db.execute(sql: "PRAGMA busy_timeout = 0")
        do {
            try db.checkpoint(.truncate)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
            return
        }
    }

    /// SQLite's durability settings: `synchronous` 2 is FULL.
    package func pragmas() throws(StoreError) -> (synchronous: Int, journal: String) {
        do {
            return try pool.writeWithoutTransaction { db in
                (
                    try Int.fetchOne(db, sql: "PRAGMA synchronous") ?? -1,
                    try String.fetchOne(db, sql: "PRAGMA journal_mode") ?? ""
                )
            }
        } catch {
            throw StoreError(explaining: error)
        }
    }

    // MARK: Opening

    private static let isLibrarySetUp: Void = waku_sqlite_disable_memory_statistics()

    /// Turns off memory statistics: the writer and the readers would contend for their lock at each allocation. Takes effect before the process's
    /// first database.
    package static func setUpLibrary() { _ = isLibrarySetUp }

    private static func open(
        _ path: String, mayCreate: Bool, isReadOnly: Bool, _ progress: ReadProgress
    ) throws(StoreError) -> DatabasePool {
        setUpLibrary()
        let exists = try DatabaseFile.exists(at: path)
        // A copy of a lost database is restored, or deleted, first.
        guard exists || mayCreate && !DatabaseFile.isRescued(path) else {
            throw StoreError(noDatabaseAt: path)
        }
        if !exists {
            // SQLite gives its other files the mode and owner of this one.
            let file = DataFolder.openFile(path, O_RDWR)
            guard file >= 0 else {
                let reason = DiskSpace.creationFailure(errno, remedy: "give this user access to the folder")
                throw StoreError(code: .permission, message: "database \(path) \(reason)")
            }
            Foundation.close(file)
        }
        var configuration = Configuration.hardened
        // Clients wait 3 s for an answer.
        configuration.busyMode = .timeout(2)
        configuration.journalMode = .wal
        configuration.readonly = isReadOnly
        configuration.prepareDatabase(progress.follow)
        do {
            return try DatabasePool(path: isReadOnly ? DatabaseFile.readOnlyName(of: path) : path, configuration: configuration)
        } catch {
            throw StoreError(explaining: error, in: path)
        }
    }

    /// Configures the writer's connection. GRDB's pool sets NORMAL, under which a power failure may lose a commit.
    private static func setUpWriter(_ pool: DatabasePool) throws {
        try pool.writeWithoutTransaction { db in
            try db.execute(
                sql: """
                    PRAGMA synchronous = FULL;
                    -- Overwrites deleted content, regardless of SQLite's compile-time default.
                    PRAGMA secure_delete = ON;
                    -- In KiB: inserts touch random index pages; with SQLite's default of 2 MB most would be read again in each
                    -- transaction.
                    PRAGMA cache_size = -16384;
                    -- Off: the commit that follows a long read, such as a backup, would copy all that was committed meanwhile.
                    PRAGMA wal_autocheckpoint = 0;
                    -- In bytes: a log that is longer, as after a long read or a large import, is cut off when it begins again.
                    PRAGMA journal_size_limit = \(2 * CheckpointSchedule.limit * 4096);
                    """)
            guard try Int.fetchOne(db, sql: "PRAGMA synchronous") == 2 else {
                throw StoreError(code: .unavailable, message: "SQLite did not accept synchronous=FULL")
            }
            guard try Int.fetchOne(db, sql: "PRAGMA secure_delete") == 1 else {
                throw StoreError(code: .unavailable, message: "SQLite did not accept secure_delete=ON")
            }
        }
    }

    /// - Parameter isStored: whether to store the check if the database has none.
    private func checkKey(_ path: String, isStored: Bool) throws(StoreError) {
        let fits: Bool
        do {
            if !isStored {
                fits = try pool.read(sealer.fits) ?? true
            } else {
                fits = try pool.write { db in
                    if let fits = try sealer.fits(db) { return fits }
                    let check = Properties.set(Sealer.checkProperty, to: sealer.sealCheck())
                    try StoreSession(db: db).perform(StoreCommand.change([check]))
                    return true
                }
            }
        } catch {
            throw StoreError(explaining: error, in: path)
        }
        guard fits else { throw StoreError(otherIdentityIn: path) }
    }
}
