import GRDB
import GRDBSQLite
import Synchronization

/// When a read was last at work: one that takes long, such as of a whole table, is no sign of a disk that hangs.
final class ReadProgress: Sendable {
    /// In steps of SQLite's virtual machine: some milliseconds of work.
    private static let interval: Int32 = 100_000

    private let last = Mutex<ContinuousClock.Instant?>(nil)

    /// To be called for each connection of a pool, which keeps this object as long as its connections. The writer does not count: its work says
    /// nothing about reads.
    func follow(_ db: Database) {
        guard db.configuration.readonly else { return }
        sqlite3_progress_handler(
            db.sqliteConnection, Self.interval,
            { progress in
                progress.map { Unmanaged<ReadProgress>.fromOpaque($0).takeUnretainedValue() }?.note()
                return 0
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// The time from which a read that began at `start` has shown no progress.
    func since(_ start: ContinuousClock.Instant) -> ContinuousClock.Instant {
        last.withLock { max($0 ?? start, start) }
    }

    private func note() { last.withLock { $0 = .now } }
}
