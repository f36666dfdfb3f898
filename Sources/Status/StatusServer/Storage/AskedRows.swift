import Synchronization

/// Rows of registrations that queries were about and that are not marked in the store yet. A query writes nothing: the marks of several seconds are
/// stored together. Bounded.
final class AskedRows: Sendable {
    static let limit = 100_000

    private let rows = Mutex<Set<Int64>>([])

    /// Rows beyond the limit are left out: the next query about them adds them.
    func insert(_ asked: [Int64]) {
        rows.withLock { rows in
            for row in asked where rows.count < Self.limit { rows.insert(row) }
        }
    }

    func contains(_ row: Int64) -> Bool { rows.withLock { $0.contains(row) } }

    var all: [Int64] { rows.withLock { $0.sorted() } }

    func remove(_ stored: [Int64]) {
        rows.withLock { $0.subtract(stored) }
    }
}
