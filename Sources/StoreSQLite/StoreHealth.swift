import Primitives

/// What stands in the way of a database. Outcomes and time come in, what to say of them goes out.
///
/// A commit tells anew each time whether the database can be written. A read that failed says nothing of the next, which looks at other pages:
/// so it counts until a check has looked at all.
struct StoreHealth {
    private static let backoff = ExponentialBackoff(initial: .seconds(5), maximum: .seconds(1800))
    /// SQLite waits for others for 2 s at most: what takes longer is the disk.
    private static let responseTimeout = Duration.seconds(10)

    private var commitFailure: String?
    private var readFailure: String?
    /// Why the log could not be moved into the database.
    private var checkpointFailure: String?
    /// Since when a commit is on its way.
    private var committingSince: ContinuousClock.Instant?
    /// Checks that failed since all could be read.
    private var failedChecks = 0
    private var nextCheck: ContinuousClock.Instant?

    /// nil when nothing does.
    ///
    /// - Parameter read: when the read began that has been going on for longest.
    func failure(at now: ContinuousClock.Instant, oldestRead read: ContinuousClock.Instant? = nil) -> String? {
        if let start = [committingSince, read].compactMap(\.self).min(), now - start > Self.responseTimeout {
            return "the disk has not answered for \((now - start).components.seconds) s: look at what it is doing"
        }
        return commitFailure ?? readFailure ?? checkpointFailure
    }

    mutating func committing(at now: ContinuousClock.Instant) {
        committingSince = now
    }

    /// - Parameter failure: nil when it was kept.
    mutating func committed(_ failure: String?) {
        committingSince = nil
        commitFailure = failure
    }

    mutating func checkpointed(_ failure: String?) {
        checkpointFailure = failure
    }

    /// A commit ended that says nothing of the next.
    mutating func committedNothing() {
        committingSince = nil
    }

    mutating func readFailed(_ failure: String, at now: ContinuousClock.Instant) {
        readFailure = failure
        if nextCheck == nil { nextCheck = now + Self.backoff.delay(afterFailures: 1, jitter: 1) }
    }

    /// Whether all is to be looked at now: with growing pauses, while something can't be read.
    func wantsCheck(at now: ContinuousClock.Instant) -> Bool {
        nextCheck.map { $0 <= now } ?? false
    }

    /// All was looked at.
    mutating func checked(_ failure: String?, at now: ContinuousClock.Instant) {
        readFailure = failure
        if failure == nil {
            (nextCheck, failedChecks) = (nil, 0)
        } else {
            failedChecks += 1
            nextCheck = now + Self.backoff.delay(afterFailures: failedChecks + 1, jitter: 1)
        }
    }
}
