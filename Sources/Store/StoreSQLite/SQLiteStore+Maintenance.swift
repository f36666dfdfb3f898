import Dispatch
import GRDB
package import Storage

extension SQLiteStore {
    /// Why the database can't be written or read at present; nil when it can.
    package var failure: String? { monitor.failure(oldestRead: oldestRead) }

    /// Since when reads have shown no progress, at most the duration of the longest-running one; nil when none is running.
    var oldestRead: ContinuousClock.Instant? { readers.oldestStart.map(progress.since) }

    /// Sets the page cache of the writer's connection, for transactions that change a large part of the database.
    package func setCache(mebibytes: Int) throws(StoreError) {
        do {
            try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA cache_size = -\(mebibytes * 1024)") }
        } catch {
            throw StoreError(explaining: error, in: path)
        }
    }

    /// Checks whether the files are in place, and checkpoints the log, which shows whether the database can be written.
    package func maintain() async {
        let lost = await withCheckedContinuation { done in
            DispatchQueue.global(qos: .utility).async { done.resume(returning: self.checkFiles()) }
        }
        if let lost { return monitor.checkpointed(lost) }
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { done in copier.copy { done.resume(returning: $0) } }
        } onCancel: {
            copier.interrupt()
        }
        // Pages that a read keeps in the log are left to the other connection: there may be many, and the read may end now.
        if outcome == .obstructed { monitor.checkpointed(nil) } else { await finishCheckpoint() }
        if monitor.wantsSpaceTest { await testSpace() }
    }

    /// Checks whether a commit that needs more space would find some.
    private func testSpace() async {
        let start = ContinuousClock.now
        let hasSpace = await withCheckedContinuation { done in
            DispatchQueue.global(qos: .utility).async { [path] in done.resume(returning: DiskSpace.isLeft(beside: path)) }
        }
        if hasSpace { monitor.foundSpace(since: start) }
    }

    package func recheck() async {
        // Not beside the copy of a lost file's rows, for which it would wait.
        if monitor.wantsCheck, queue.refusal == nil { await check() }
    }

    private func finishCheckpoint() async {
        do {
            _ = try await queue.run { try $0.checkpoint(.passive) }
            monitor.checkpointed(nil)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
            // Another process checkpoints the log, such as an admin command that ends.
        } catch {
            monitor.checkpointed(error)
        }
    }

    /// Checks whether the whole database can be read. Takes seconds for a large database; ends early when the task is cancelled.
    package func check() async {
        do {
            // Pages that were damaged when they were cached are read again. Without waiting for reads in progress: others would wait, too.
            pool.invalidateReadOnlyConnections()
            try await queue.run { $0.releaseMemory() }
            try await StoreCheck(path: path, sealer: sealer, schema: schema).run()
            monitor.checked(nil)
        } catch is CancellationError {
            return
        } catch {
            monitor.checked(error)
        }
    }
}

/// Reads the whole database on its own connection, so that cached pages do not hide a loss on disk.
private struct StoreCheck {
    let path: String
    let sealer: Sealer
    let schema: Schema
    /// SQLite ignores an interruption between two statements.
    private let cancellation = Cancellation()

    func run() async throws {
        var configuration = Configuration.hardened
        configuration.readonly = true
        let database = try DatabaseQueue(path: path, configuration: configuration)
        do {
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    DispatchQueue.global(qos: .utility).async { continuation.resume(with: Result { try database.read(look) }) }
                }
            } onCancel: {
                cancellation.request()
                database.interrupt()
            }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
            throw CancellationError()
        }
    }

    private func look(_ db: Database) throws {
        try checkCancellation()
        guard try String.fetchOne(db, sql: "PRAGMA quick_check(1)") == "ok" else { throw DatabaseError(resultCode: .SQLITE_CORRUPT) }
        for rows in schema.parts.sealedRows {
            try sealer.openAll(rows, in: db) { error in
                if let error { throw error }
                try checkCancellation()
            }
        }
    }

    private func checkCancellation() throws {
        if cancellation.isRequested { throw CancellationError() }
    }
}
