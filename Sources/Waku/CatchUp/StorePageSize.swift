/// How many messages a store is asked for at a time: fewer after an answer that was too long or too slow, so that nobody can stand in the way of
/// others' messages with large ones of his own; more again when answers come.
package struct StorePageSize: Hashable, Sendable {
    /// After so many good pages, larger ones are tried.
    private static let patience = 10

    package private(set) var value = StoreQuery.maximumPageSize
    private var goodCount = 0

    package init() {}

    package mutating func wasGood() {
        guard value < StoreQuery.maximumPageSize else { return }
        goodCount += 1
        guard goodCount >= Self.patience else { return }
        value = min(value * 10, StoreQuery.maximumPageSize)
        goodCount = 0
    }

    package mutating func wasTooMuch() {
        value = max(1, value / 10)
        goodCount = 0
    }
}
