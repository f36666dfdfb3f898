import Core
import Synchronization

/// The latest rows of subscriptions whose first delivery was noted, so that further deliveries write nothing.
final class DeliveredRows: Sendable {
    /// About 20 bytes per entry; at most twice as many entries are kept.
    private static let capacity = 100_000

    private let rows = Mutex(GenerationalCache<Int64, Void>(capacity: capacity))

    /// Adds a row. Returns false if it is among the latest already.
    func isNew(_ row: Int64) -> Bool {
        rows.withLock { $0.insert(row) }
    }
}
