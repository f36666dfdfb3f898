import GRDB
import Storage
import Synchronization

/// Tracks the health of a database: see ``StoreHealth``.
final class StoreMonitor: Sendable {
    private let health = Mutex(StoreHealth())

    /// - Parameter start: the start time of the longest-running read.
    func failure(oldestRead start: ContinuousClock.Instant?) -> String? { health.withLock { $0.failure(at: .now, oldestRead: start) } }
    var wantsCheck: Bool { health.withLock { $0.wantsCheck(at: .now) } }
    var wantsSpaceTest: Bool { health.withLock { $0.wantsSpaceTest(at: .now) } }

    /// - Parameter start: the start time of the test.
    func foundSpace(since start: ContinuousClock.Instant) { health.withLock { $0.foundSpace(since: start) } }

    func note(_ event: CommitEvent) { health.withLock { $0.note(event, at: .now) } }

    /// Records a failed read, and returns the error to report.
    func readFailed(_ error: any Error) -> StoreError {
        let explained = StoreError(explaining: error)
        if error is DatabaseError || explained.code == .damaged {
            health.withLock { $0.readFailed(explained.message, at: .now) }
        }
        return explained
    }

    func checkpointed(_ error: (any Error)?) {
        health.withLock { $0.checkpointed(error.map { StoreError(explaining: $0).message }) }
    }

    func checked(_ error: (any Error)?) {
        health.withLock { $0.checked(error.map { StoreError(explaining: $0).message }, at: .now) }
    }
}
