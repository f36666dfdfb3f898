import Synchronization

/// The ledger that all parts of a run share.
final class LedgerBox: Sendable {
    private let ledger = Mutex(Ledger())
    /// Rings for each answer that a client got.
    let answers = Bell()

    func withLock<Result: Sendable>(_ body: (inout Ledger) throws -> Result) rethrows -> Result {
        try ledger.withLock { try body(&$0) }
    }

    var copy: Ledger { ledger.withLock { $0 } }
}
