import Synchronization

/// The ledger shared by all parts of a run.
final class LedgerBox: Sendable {
    private let ledger = Mutex(Ledger())
    /// Signalled for each answer to a client.
    let answers = Bell()

    func withLock<Result: Sendable>(_ body: (inout Ledger) throws -> Result) rethrows -> Result {
        try ledger.withLock { try body(&$0) }
    }

    var copy: Ledger { ledger.withLock { $0 } }
}
