import Dispatch
import GRDB
import GRDBSQLite
import Storage
import Synchronization

/// Commits with one writer. All waiting commands become one transaction with one sync to disk; commands that arrive meanwhile wait for the next one.
///
/// SQLite rolls back a commit that fails in any way, including a failed sync, and the next commit overwrites any part of it that reached the log. So
/// after a reported failure no other connection sees the changes, but a crash before the next commit may still restore the complete transaction.
final class SQLiteCommitQueue: Sendable {
    private struct Item {
        let batch: any CommitBatch
        let index: Int
    }

    private static let attemptLimit = 3

    private let waiting = Mutex(WaitingBatches())
    private let queue = DispatchQueue(label: "waku-push.store")
    private let pool: DatabasePool
    private let copier: LogCopier
    private let failure = Mutex<StoreError?>(nil)
    private let checkpoints = Mutex(CheckpointSchedule())
    private let note: @Sendable (CommitEvent) -> Void

    /// - Parameter note: called with each event, in order, before the batches concerned are told.
    init(pool: DatabasePool, copier: LogCopier, note: @escaping @Sendable (CommitEvent) -> Void) {
        self.pool = pool
        self.copier = copier
        self.note = note
    }

    func add(_ batch: any CommitBatch) {
        if waiting.withLock({ $0.add(batch) }) { queue.async { self.drain() } }
    }

    /// Whether no work is waiting or running.
    var isIdle: Bool { waiting.withLock { !$0.isRunning } }

    /// Runs work on the writer between two groups.
    func run<T: Sendable>(_ work: @escaping @Sendable (Database) throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { [pool] in continuation.resume(with: Result { try pool.writeWithoutTransaction(work) }) }
        }
    }

    /// With which all commits fail; nil if they are carried out.
    var refusal: StoreError? { failure.withLock(\.self) }

    /// Fails all commits with this error until it is nil. When this returns, no commit is in progress that succeeds.
    func refuse(_ error: StoreError?) {
        failure.withLock { $0 = error }
        if error != nil { queue.sync {} }
    }

    /// Waits until everything added before is done.
    func finish() {
        queue.sync {
            while let group = waiting.withLock({ $0.takeGroup() }) { commit(group) }
        }
    }

    /// Runs one group per turn, so that other work on the queue can run in between.
    private func drain() {
        guard let group = waiting.withLock({ $0.takeGroup() }) else { return }
        commit(group)
        queue.async { self.drain() }
    }

    private func commit(_ group: [any CommitBatch]) {
        let items = group.flatMap { batch in (0..<batch.count).map { Item(batch: batch, index: $0) } }
        let refusal = refusal
        if let refusal {
            note(.committed(failure: refusal))
            for item in items { item.batch.fail(item.index, refusal) }
        } else if !items.isEmpty {
            commit(items[...])
        }
        for batch in group { batch.complete() }
        if !items.isEmpty, refusal == nil { tendLog() }
    }

    /// Called once the batches of a group are told, so that they do not wait for it.
    private func tendLog() {
        try? pool.writeWithoutTransaction { db in
            switch checkpoints.withLock({ $0.committed(pages: db.takeWrittenPageCount()) }) {
            case .copy: copier.copy { outcome in self.checkpoints.withLock { $0.copied(outcome) } }
            case .finish: _ = try db.checkpoint(.passive)
            case nil: break
            }
        }
    }

    /// A group that fails because of one of its items is retried in halves, so that a bad item fails alone. When the database itself fails, all items
    /// fail at once: retried separately, each would fail the same way after the same wait.
    ///
    /// - Parameters:
    ///   - items: the items, in commit order.
    ///   - attempt: the number of the attempt, for a single command that met a conflict.
    private func commit(_ items: ArraySlice<Item>, attempt: Int = 1) {
        note(.committing)
        do {
            try pool.writeWithoutTransaction { db in
                try db.inTransaction(.immediate) {
                    for item in items { try StoreSession(db: db).perform(item.batch.command(item.index)) }
                    return .commit
                }
            }
            note(.committed(failure: nil))
        } catch let error as DatabaseError where error.concernsAll {
            note(.committed(failure: StoreError(explaining: error)))
            for item in items { item.batch.fail(item.index, error) }
        } catch {
            guard items.count > 1 else {
                if error is StoreSession.Conflict, attempt < Self.attemptLimit { return commit(items, attempt: attempt + 1) }
                note(.failed(StoreError(explaining: error)))
                for item in items { item.batch.fail(item.index, error) }
                return
            }
            let middle = items.startIndex + items.count / 2
            commit(items[..<middle])
            commit(items[middle...])
        }
    }
}

extension Database {
    /// The number of pages that this connection wrote to the log since the last call.
    fileprivate func takeWrittenPageCount() -> Int {
        var count: Int32 = 0
        var unused: Int32 = 0
        sqlite3_db_status(sqliteConnection, SQLITE_DBSTATUS_CACHE_WRITE, &count, &unused, 1)
        return Int(count)
    }
}

extension DatabaseError {
    /// The pages that were read are damaged; others may be intact.
    var isDamage: Bool {
        let codes: [ResultCode] = [
            .SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ, .SQLITE_IOERR_CORRUPTFS, .SQLITE_IOERR_DATA,
        ]
        return [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(resultCode) || codes.contains(extendedResultCode)
    }

    /// Whether every write would fail.
    var concernsAll: Bool {
        let codes: [ResultCode] = [
            .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_NOMEM, .SQLITE_PERM,
            .SQLITE_AUTH, .SQLITE_PROTOCOL,
        ]
        return !isDamage && codes.contains(resultCode)
    }
}
