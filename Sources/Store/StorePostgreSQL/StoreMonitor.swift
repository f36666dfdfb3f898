import Storage
import Synchronization

/// Tracks the health of a database: see `StoreHealth`.
final class StoreMonitor: Sendable {
    private let address: PostgreSQLAddress
    private let health = Mutex(
        StoreHealth(subject: "PostgreSQL", remedy: "look at the server, its locks and its standby", responseTimeout: .seconds(5)))

    init(_ address: PostgreSQLAddress) {
        self.address = address
    }

    /// Only the duration of commits counts, not of reads: reading all rows may take minutes. ``PostgreSQLStore/maintain()`` commits every few
    /// seconds.
    var failure: String? { health.withLock { $0.failure(at: .now) } }
    var outage: String? { health.withLock { $0.outage(at: .now) } }
    var wantsCheck: Bool { health.withLock { $0.wantsCheck(at: .now) } }
    var wantsSpaceTest: Bool { health.withLock { $0.wantsSpaceTest(at: .now) } }

    /// - Parameter start: the start time of the test.
    func foundSpace(since start: ContinuousClock.Instant) { health.withLock { $0.foundSpace(since: start) } }

    func note(_ event: CommitEvent) { health.withLock { $0.note(event, at: .now) } }

    /// Records a failed read, and returns the error to report. An error thrown by a step of a command says nothing about the database, and a lost
    /// connection nothing about the rows.
    func readFailed(_ error: any Error) -> StoreError {
        let explained = StoreError(explaining: error, at: address)
        if explained.code == .damaged {
            health.withLock { $0.readFailed(explained.message, at: .now) }
        } else if error is PostgreSQLError || error is StoreError {
            reached(explained)
        }
        return explained
    }

    /// Records whether the server answered.
    func reached(_ failure: StoreError?) {
        health.withLock { $0.checkpointed(failure?.message) }
    }

    /// Records the result of a check of all rows.
    func checked(_ error: (any Error)?) {
        let failure = error.map { StoreError(explaining: $0, at: address).message }
        health.withLock { $0.checked(failure, at: .now) }
    }
}
