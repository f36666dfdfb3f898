import Primitives

/// What stands in the way of a database. Outcomes and time come in, what to say of them goes out.
///
/// A commit tells anew each time whether the database can be written. A read that failed says nothing of the next, which looks at other pages:
/// so it counts until a check has looked at all.
package struct StoreHealth: Sendable {
    private static let backoff = ExponentialBackoff(initial: .seconds(5), maximum: .seconds(1800))

    /// What does the work: `the disk`.
    private let subject: String
    /// What to do when it does not.
    private let remedy: String
    /// A commit or read that takes longer is reported.
    private let responseTimeout: Duration
    private var commitFailure: String?
    private var readFailure: String?
    /// Why the log could not be moved into the database.
    private var checkpointFailure: String?
    /// Since when a commit is on its way.
    private var committingSince: ContinuousClock.Instant?
    /// Checks that failed since all could be read.
    private var failedChecks = 0
    private var nextCheck: ContinuousClock.Instant?

    /// - Parameter responseTimeout: an engine waits for other processes for 2 s at most: a much longer time is due to the disk or the server.
    package init(subject: String = "the disk", remedy: String = "look at what it is doing", responseTimeout: Duration = .seconds(10)) {
        self.subject = subject
        self.remedy = remedy
        self.responseTimeout = responseTimeout
    }

    /// nil when nothing does.
    ///
    /// - Parameter read: when the read began that has been going on for longest.
    package func failure(at now: ContinuousClock.Instant, oldestRead read: ContinuousClock.Instant? = nil) -> String? {
        if let start = [committingSince, read].compactMap(\.self).min(), now - start > responseTimeout {
            return "\(subject) has not answered for \((now - start).components.seconds) s: \(remedy)"
        }
        return commitFailure ?? readFailure ?? checkpointFailure
    }

    package mutating func committing(at now: ContinuousClock.Instant) {
        committingSince = now
    }

    /// - Parameter failure: nil when it was kept.
    package mutating func committed(_ failure: String?) {
        committingSince = nil
        commitFailure = failure
    }

    package mutating func checkpointed(_ failure: String?) {
        checkpointFailure = failure
    }

    /// A commit ended that says nothing of the next.
    package mutating func committedNothing() {
        committingSince = nil
    }

    package mutating func readFailed(_ failure: String, at now: ContinuousClock.Instant) {
        readFailure = failure
        if nextCheck == nil { nextCheck = now + Self.backoff.delay(afterFailures: 1, jitter: 1) }
    }

    /// Whether all is to be looked at now: with growing pauses, while something can't be read.
    package func wantsCheck(at now: ContinuousClock.Instant) -> Bool {
        nextCheck.map { $0 <= now } ?? false
    }

    /// All was looked at.
    package mutating func checked(_ failure: String?, at now: ContinuousClock.Instant) {
        readFailure = failure
        if failure == nil {
            (nextCheck, failedChecks) = (nil, 0)
        } else {
            failedChecks += 1
            nextCheck = now + Self.backoff.delay(afterFailures: failedChecks + 1, jitter: 1)
        }
    }
}
