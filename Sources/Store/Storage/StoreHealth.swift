import Core

/// A step of a commit.
package enum CommitEvent: Sendable {
    case committing
    /// - Parameter failure: nil when the commit succeeded.
    case committed(failure: StoreError?)
    /// A command failed for a reason of its own.
    case failed(StoreError)
}

/// Decides from the outcomes of commits and reads whether the database works, and which failure to report if it does not. Time is an input.
///
/// Each commit shows anew whether the database can be written, except for space: commits that change rows in place, or fit into free pages, succeed
/// on a full disk. After a failure for lack of space the engine tests for space, and the failure persists until a test finds some. A successful read does not end an earlier failure, because it may have used other
/// pages: the failure persists until a check has read everything.
package struct StoreHealth: Sendable {
    /// The time after the last failure for lack of space until the first test for space.
    private static let fullTime = Duration.seconds(10)
    private static let backoff = ExponentialBackoff(initial: .seconds(5), maximum: .seconds(1800))

    /// The component to name in messages: `the disk`.
    private let subject: String
    /// The remedy to name in messages.
    private let remedy: String
    /// Commits and reads that take longer are reported.
    private let responseTimeout: Duration
    private var commitFailure: String?
    /// The last failure for lack of space; nil once a test has found some.
    private var full: (failure: String, time: ContinuousClock.Instant)?
    private var readFailure: String?
    /// Why the write-ahead log could not be checkpointed.
    private var checkpointFailure: String?
    /// The start time of the commit in progress.
    private var committingSince: ContinuousClock.Instant?
    /// Consecutive failed checks.
    private var failedChecks = 0
    private var nextCheck: ContinuousClock.Instant?

    /// - Parameter responseTimeout: the longest time that commits and reads may take. An engine waits at most 2 s for other processes, so that a much
    ///   longer time is due to the disk or the server.
    package init(subject: String = "the disk", remedy: String = "look at what it is doing", responseTimeout: Duration = .seconds(10)) {
        self.subject = subject
        self.remedy = remedy
        self.responseTimeout = responseTimeout
    }

    /// The current failure; nil when the database works.
    ///
    /// - Parameter read: the start time of the longest-running read.
    package func failure(at now: ContinuousClock.Instant, oldestRead read: ContinuousClock.Instant? = nil) -> String? {
        outage(at: now, oldestRead: read) ?? full?.failure ?? readFailure
    }

    /// As ``failure(at:oldestRead:)``, without what fails other nodes that share the database, too: rows that can't be read, and a full disk on which
    /// the last commit succeeded.
    package func outage(at now: ContinuousClock.Instant, oldestRead read: ContinuousClock.Instant? = nil) -> String? {
        if let start = [committingSince, read].compactMap(\.self).min(), now - start > responseTimeout {
            return "\(subject) has not answered for \((now - start).components.seconds) s: \(remedy)"
        }
        return commitFailure ?? checkpointFailure
    }

    package mutating func note(_ event: CommitEvent, at now: ContinuousClock.Instant) {
        switch event {
        case .committing: committing(at: now)
        case .committed(let failure):
            committed(failure?.message)
            if let failure, failure.code == .full { full = (failure.message, now) }
        case .failed(let error):
            committingSince = nil
            if error.code == .damaged { readFailed(error.message, at: now) }
        }
    }

    /// Also called when a commit in progress is attempted again.
    package mutating func committing(at now: ContinuousClock.Instant) {
        committingSince = committingSince ?? now
    }

    /// - Parameter failure: nil when the commit succeeded.
    package mutating func committed(_ failure: String?) {
        committingSince = nil
        commitFailure = failure
    }

    /// Whether to test for space now.
    package func wantsSpaceTest(at now: ContinuousClock.Instant) -> Bool {
        full.map { now - $0.time >= Self.fullTime } ?? false
    }

    /// Records that a test found space.
    ///
    /// - Parameter start: its start time. A commit that has failed since shows that there is none.
    package mutating func foundSpace(since start: ContinuousClock.Instant) {
        if let full, full.time <= start { self.full = nil }
    }

    package mutating func checkpointed(_ failure: String?) {
        checkpointFailure = failure
    }

    package mutating func readFailed(_ failure: String, at now: ContinuousClock.Instant) {
        readFailure = failure
        if nextCheck == nil { nextCheck = now + Self.backoff.delay(afterFailures: 1, jitter: 1) }
    }

    /// Whether to run a full check now; the intervals grow while checks fail.
    package func wantsCheck(at now: ContinuousClock.Instant) -> Bool {
        nextCheck.map { $0 <= now } ?? false
    }

    /// Records the result of a full check.
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
