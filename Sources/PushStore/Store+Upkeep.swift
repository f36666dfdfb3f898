import Dispatch
import GRDB
import StatusProtocol

extension Store {
    /// Why the database can't be written or read at present; nil when it can.
    public var failure: String? { monitor.failure(oldestRead: readers.oldestStart) }

    /// To be called every few seconds: moves the log into the database, which shows whether that can be written, and looks again at what could
    /// not be read. Neither is told to the caller: see ``failure``.
    public func keepUp() async {
        do {
            _ = try await queue.run { try $0.checkpoint(.passive) }
            monitor.checkpointed(nil)
        } catch {
            monitor.checkpointed(error)
        }
        if monitor.wantsCheck { await check() }
    }

    /// Looks whether all can be read. Takes seconds for a large database; ends early when the task is cancelled.
    public func check() async {
        do {
            try await StoreCheck(path: pool.path, rows: rows).run { [pool] in pool.releaseMemory() }
            monitor.checked(nil)
        } catch is CancellationError {
            return
        } catch {
            monitor.checked(error)
        }
    }
}

/// Reads all that there is, by a connection of its own: it must not find in memory what is lost on disk.
private struct StoreCheck {
    let path: String
    let rows: SealedRows

    /// - Parameter prepare: done first, on the thread of the check.
    func run(prepare: @escaping @Sendable () -> Void) async throws {
        var configuration = Configuration()
        configuration.readonly = true
        let database = try DatabaseQueue(path: path, configuration: configuration)
        do {
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    DispatchQueue.global(qos: .utility).async {
                        prepare()
                        continuation.resume(with: Result { try database.read(look) })
                    }
                }
            } onCancel: {
                database.interrupt()
            }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
            throw CancellationError()
        }
    }

    private func look(_ db: Database) throws {
        guard try String.fetchOne(db, sql: "PRAGMA quick_check(1)") == "ok" else { throw DatabaseError(resultCode: .SQLITE_CORRUPT) }
        try rows.openRegistrations(in: db) { error in
            if let error { throw error }
        }
    }
}
