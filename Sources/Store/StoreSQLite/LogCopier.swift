import Dispatch
import GRDB
import Synchronization

/// Copies the log into the database on a connection and a thread of its own, so that commits do not wait for it.
///
/// Durability is SQLite's: the log is synced before a page is copied, and the database before the log is overwritten.
final class LogCopier: Sendable {
    private let path: String
    private let queue = DispatchQueue(label: "waku-push.store.checkpoint")
    /// Opened by the first copy: most commands of the command line end before one.
    private let connection = Mutex<DatabaseQueue?>(nil)
    private let isEnding = Atomic(false)
    private let hasLeftRest = Atomic(false)

    /// - Parameter path: the database file.
    init(path: String) {
        self.path = path
    }

    enum Outcome {
        /// At most a small rest is left, besides what was appended meanwhile.
        case copied
        /// A read that began earlier keeps a part of the log from being copied, or ``LogCopier/interrupt()`` did.
        case obstructed
        /// A checkpoint on the writer's connection shows why.
        case failed
    }

    func copy(completion: @escaping @Sendable (Outcome) -> Void) {
        queue.async {
            var outcome = Outcome.failed
            do {
                if self.isEnding.load(ordering: .acquiring) { throw DatabaseError(resultCode: .SQLITE_INTERRUPT) }
                outcome = try self.opened().writeWithoutTransaction(Self.copy)
            } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
                self.hasLeftRest.store(true, ordering: .releasing)
                outcome = .obstructed
            } catch {}
            completion(outcome)
        }
    }

    /// Whether ``interrupt()`` has left something in the log.
    var wasInterrupted: Bool { hasLeftRest.load(ordering: .acquiring) }

    /// Ends the present copy early, and refuses further ones.
    func interrupt() {
        isEnding.store(true, ordering: .releasing)
        connection.withLock { $0?.interrupt() }
    }

    /// Copies again what was appended meanwhile, as long as that is much, and less each time: a long log takes minutes.
    private static func copy(_ db: Database) throws -> Outcome {
        var (end, last) = (0, Int.max)
        while true {
            let (log, copied) = try db.checkpoint(.passive)
            guard log - copied <= CheckpointSchedule.rest else { return .obstructed }
            let isFirst = last == .max
            // Negative if the log has begun again.
            let count = copied - end
            if !isFirst, count <= CheckpointSchedule.rest || count > last / 2 { return .copied }
            (end, last) = (copied, count)
        }
    }

    /// Waits for copies that were started before.
    func close() {
        queue.sync {
            connection.withLock { connection in
                try? connection?.close()
                connection = nil
            }
        }
    }

    private func opened() throws -> DatabaseQueue {
        try connection.withLock { connection in
            if let connection { return connection }
            let opened = try DatabaseQueue(path: path, configuration: .hardened)
            // Otherwise a checkpoint might not sync.
            try opened.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
            connection = opened
            return opened
        }
    }
}
