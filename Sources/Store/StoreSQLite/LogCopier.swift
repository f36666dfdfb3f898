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

    /// - Parameter path: the database file.
    init(path: String) {
        self.path = path
    }

    /// Failures are ignored: checkpoints on the writer's connection follow, and maintenance reports theirs.
    func copy(completion: @escaping @Sendable () -> Void) {
        queue.async {
            try? self.opened().writeWithoutTransaction { db in
                // Twice: the second time, what was appended during the first, which is much less.
                for _ in 0..<2 { _ = try db.checkpoint(.passive) }
            }
            completion()
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
