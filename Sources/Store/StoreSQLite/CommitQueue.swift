import Dispatch
import GRDB
import Synchronization

/// Items that are committed together with whatever else waits.
protocol CommitBatch: Sendable {
    var count: Int { get }
    /// Changes what one item asks for, inside of a transaction. May be called again, when that transaction failed.
    func run(_ index: Int, _ db: Database) throws
    /// Nothing of this item was kept.
    func fail(_ index: Int, _ error: any Error)
    /// Every item is durable, or has failed. Called on the writer's thread, which others wait for.
    func complete()
}

/// One writer. Everything that waits becomes one transaction, with one sync to disk; what comes meanwhile gathers for the next.
///
/// A commit that fails in any way, a sync that fails included, is rolled back by SQLite: the next one overwrites in the log what may have
/// reached it. So whoever is told of a failure knows that nothing of it is seen by others, but not that a crash before the next commit can't
/// bring it back whole.
final class CommitQueue: Sendable {
    enum Event: Sendable {
        case committing
        /// - Parameter failure: of the database. nil when it kept what it was given.
        case committed(failure: DatabaseError?)
        /// An item failed, and others may work.
        case failed(any Error)
    }

    private struct State {
        var waiting: [any CommitBatch] = []
        var isRunning = false
    }

    private struct Item {
        let batch: any CommitBatch
        let index: Int
    }

    private static let attemptLimit = 3

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "waku-push.store")
    private let pool: DatabasePool
    private let note: @Sendable (Event) -> Void

    /// - Parameter note: what happens, in the order in which it does, before the batches concerned are told.
    init(pool: DatabasePool, note: @escaping @Sendable (Event) -> Void) {
        self.pool = pool
        self.note = note
    }

    func add(_ batch: any CommitBatch) {
        let mustStart = state.withLock { state in
            state.waiting.append(batch)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustStart { queue.async { self.drain() } }
    }

    /// Whether all that was added is done.
    var isIdle: Bool { state.withLock { !$0.isRunning } }

    /// Between two groups.
    func run<T: Sendable>(_ work: @escaping @Sendable (Database) throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { [pool] in continuation.resume(with: Result { try pool.writeWithoutTransaction(work) }) }
        }
    }

    /// Returns when everything that was added before is done.
    func finish() {
        queue.sync {}
    }

    private func drain() {
        while let group = nextGroup() {
            let items = group.flatMap { batch in (0..<batch.count).map { Item(batch: batch, index: $0) } }
            if !items.isEmpty { commit(items[...]) }
            for batch in group { batch.complete() }
        }
    }

    private func nextGroup() -> [any CommitBatch]? {
        state.withLock { state in
            if state.waiting.isEmpty {
                state.isRunning = false
                return nil
            }
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    /// A group that fails because of one of its items is tried again in halves, so that a bad item takes no other with it. When the database
    /// itself fails, all fail at once: each on its own would fail the same way, and wait as long for it.
    ///
    /// - Parameters:
    ///   - items: in the order of their commits.
    ///   - attempt: of a single command that met other rows than it read.
    private func commit(_ items: ArraySlice<Item>, attempt: Int = 1) {
        note(.committing)
        do {
            try pool.writeWithoutTransaction { db in
                try db.inTransaction(.immediate) {
                    for item in items { try item.batch.run(item.index, db) }
                    return .commit
                }
            }
            note(.committed(failure: nil))
        } catch let error as DatabaseError where error.concernsAll {
            note(.committed(failure: error))
            for item in items { item.batch.fail(item.index, error) }
        } catch {
            guard items.count > 1 else {
                if error is StoreSession.Conflict, attempt < Self.attemptLimit { return commit(items, attempt: attempt + 1) }
                note(.failed(error))
                for item in items { item.batch.fail(item.index, error) }
                return
            }
            let middle = items.startIndex + items.count / 2
            commit(items[..<middle])
            commit(items[middle...])
        }
    }
}

extension DatabaseError {
    /// Of the pages that were to be read: others may be whole.
    var isDamage: Bool {
        let codes: [ResultCode] = [
            .SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ, .SQLITE_IOERR_CORRUPTFS, .SQLITE_IOERR_DATA,
        ]
        return [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(resultCode) || codes.contains(extendedResultCode)
    }

    /// Whatever is to be written fails.
    var concernsAll: Bool {
        let codes: [ResultCode] = [
            .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_NOMEM, .SQLITE_PERM,
            .SQLITE_AUTH, .SQLITE_PROTOCOL,
        ]
        return !isDamage && codes.contains(resultCode)
    }
}
