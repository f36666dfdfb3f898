import Dispatch
import GRDB
import Synchronization

/// One writer. Everything that waits becomes one transaction, with one sync to disk; what comes meanwhile gathers for the next.
final class CommitQueue: Sendable {
    /// Changes something, and returns what is to be said once it is durable.
    struct Job: Sendable {
        let run: @Sendable (Database) throws -> @Sendable () -> Void
        let fail: @Sendable (any Error) -> Void
    }

    private struct State {
        var waiting: [Job] = []
        var isRunning = false
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "waku-push.store")
    private let pool: DatabasePool

    init(pool: DatabasePool) {
        self.pool = pool
    }

    func add(_ jobs: [Job]) {
        let mustStart = state.withLock { state in
            state.waiting += jobs
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustStart { queue.async { self.drain() } }
    }

    /// Returns when everything that was added before is done.
    func finish() {
        queue.sync {}
    }

    private func drain() {
        while let jobs = nextGroup() {
            commit(jobs[...])
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

    private func nextGroup() -> [Job]? {
        state.withLock { state in
            if state.waiting.isEmpty {
                state.isRunning = false
                return nil
            }
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    /// A group that fails because of one of its jobs is tried again in halves, so that a bad job takes no other with it. When the database
    /// itself fails, all fail at once: each on its own would fail the same way, and wait as long for it.
    private func commit(_ jobs: ArraySlice<Job>) {
        do {
            var completions: [@Sendable () -> Void] = []
            try pool.writeWithoutTransaction { db in
                try db.inTransaction(.immediate) {
                    completions = try jobs.map { try $0.run(db) }
                    return .commit
                }
            }
            for complete in completions { complete() }
        } catch {
            guard jobs.count > 1, !Self.concernsAll(error) else {
                for job in jobs { job.fail(error) }
                return
            }
            let middle = jobs.startIndex + jobs.count / 2
            commit(jobs[..<middle])
            commit(jobs[middle...])
        }
    }
}
