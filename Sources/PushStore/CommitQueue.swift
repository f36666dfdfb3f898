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
final class CommitQueue: Sendable {
    private struct State {
        var waiting: [any CommitBatch] = []
        var isRunning = false
    }

    private struct Item {
        let batch: any CommitBatch
        let index: Int
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "waku-push.store")
    private let pool: DatabasePool

    init(pool: DatabasePool) {
        self.pool = pool
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

    private static func concernsAll(_ error: any Error) -> Bool {
        let codes: [ResultCode] = [
            .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_READONLY, .SQLITE_NOTADB, .SQLITE_CANTOPEN,
            .SQLITE_NOMEM, .SQLITE_PERM, .SQLITE_AUTH,
        ]
        guard let error = error as? DatabaseError else { return false }
        return codes.contains(error.resultCode)
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
    private func commit(_ items: ArraySlice<Item>) {
        do {
            try pool.writeWithoutTransaction { db in
                try db.inTransaction(.immediate) {
                    for item in items { try item.batch.run(item.index, db) }
                    return .commit
                }
            }
        } catch {
            guard items.count > 1, !Self.concernsAll(error) else {
                for item in items { item.batch.fail(item.index, error) }
                return
            }
            let middle = items.startIndex + items.count / 2
            commit(items[..<middle])
            commit(items[middle...])
        }
    }
}
