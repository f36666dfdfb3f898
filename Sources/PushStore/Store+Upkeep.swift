import Dispatch
import GRDB
import StatusProtocol

extension Store {
    /// Why the database can't be written or read at present; nil when it can.
    public var failure: String? { monitor.failure }

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
        let registrations = try Row.fetchCursor(
            db, sql: "SELECT key_hash, installation, version, sealed, changed_at FROM registration WHERE sealed IS NOT NULL")
        // A copy tells integers from texts; a row that is still in the statement converts them.
        while let row = try registrations.next()?.copy() {
            guard let keyHash = KeyHash(bytes: try row.bytes(0)) else { throw DatabaseError(resultCode: .SQLITE_CORRUPT) }
            let key = RegistrationKey(keyHash: keyHash, installationID: InstallationID(bytes: try row.bytes(1)))
            let version = UInt64(bitPattern: try row.decode(atIndex: 2))
            _ = try row.decode(Int64.self, atIndex: 4)
            _ = try rows.openRegistration(try row.bytes(3), of: key, version: version)
        }
    }
}
