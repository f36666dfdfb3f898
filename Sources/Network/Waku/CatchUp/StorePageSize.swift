/// The page size of store queries. It shrinks after a response that was too large or too slow, so that a sender of large messages cannot keep
/// other messages from being fetched, and grows again after successful responses.
package struct StorePageSize: Hashable, Sendable {
    /// Consecutive successful pages before a larger size is tried.
    private static let growthThreshold = 10

    package private(set) var value = StoreQuery.maximumPageSize
    private var successCount = 0

    package init() {}

    package mutating func noteSuccess() {
        guard value < StoreQuery.maximumPageSize else { return }
        successCount += 1
        guard successCount >= Self.growthThreshold else { return }
        value = min(value * 10, StoreQuery.maximumPageSize)
        successCount = 0
    }

    package mutating func noteTooLarge() {
        value = max(1, value / 10)
        successCount = 0
    }
}
