package import Core

/// Decides whether a post to gorush may go out. Outcomes and time go in, an admission comes out; its owner does the I/O.
///
///     closed ──(failures in a row = limit, or gorush asks for a pause)──▶ open ◀────────(the probe fails)────────┐
///       ▲ ▲                                                               │  ▲                                   │
///       │ └────────(a post from before works)─────────────────────────────┤  └──(nothing was left to post)──┐    │
///       │                                                                 │                                 │    │
///       │                                                                 └──(time passed, a probe goes out)▶ half-open
///       └───────────────────────────────────────(a post works)─────────────────────────────────────────────────┘
///
/// - A post *works* when gorush gives a valid answer, even a refusal of its content.
/// - Posts in flight when a failure is counted belong to that failure: eight connections that break at once are one failure.
/// - A server error may be caused by a notification, and its recipients are suspects. Failures that one suspect in common explains count as one, so
///   that a single recipient does not open the breaker for the others before it has failed ``Configuration/suspectFailureLimit`` times in a row.
/// - A single broken connection does not open the breaker; three failures in a row do, each within a minute of the one before. When connections are
///   refused, this takes less than a second.
/// - While it is open, nothing is posted. The pause doubles with each failed probe, unless all its recipients are strangers, and is at least as long
///   as gorush asks for (Retry-After).
/// - While fewer suspects than the limit explain all failures, a probe for another recipient does not wait for the end of the pause. If gorush is down,
///   two such probes fail at most, and the next ones wait.
/// - While it is half-open, only one small post is in flight.
package struct CircuitBreaker: Sendable {
    package struct Configuration: Sendable {
        /// The number of failures in a row that opens the breaker.
        package let failureLimit = 3
        /// The number of failures in a row that opens the breaker even if a few suspects explain them: nothing has worked meanwhile. On a node with
        /// a single notification it is reached after 4 s, so that a gorush that is down is reported soon; other recipients may be posted to.
        package var suspectFailureLimit = 5
        /// The number of recipients to remember for which a post worked.
        package var recipientLimit = 0
        /// The maximum time between two failures in a row.
        package private(set) var failureMemory: Duration = .seconds(60)
        /// The pause while open, by the number of failed probes.
        package var backoff = ExponentialBackoff(initial: .milliseconds(500), maximum: .seconds(5))
        /// The upper limit for a pause that gorush asks for.
        package var longestRetryAfter: Duration = .seconds(300)

        package init() {}

        /// Posts that time out one after the other are failures in a row.
        package mutating func setTimeout(_ timeout: Duration) {
            failureMemory = max(.seconds(60), timeout * 2)
        }
    }

    package enum State: Hashable, Sendable {
        /// - Parameter failures: the number of failures in a row, below the limits.
        case closed(failures: Int)
        /// - Parameter attempt: the number of probes that failed since the breaker was closed.
        case open(until: Timestamp, attempt: Int)
        case halfOpen(probe: UInt64, attempt: Int)
    }

    /// The kind of post that may go out.
    package enum Admission: Hashable, Sendable {
        case posts
        /// One small post; then ``began(probe:)``.
        case probe
        case nothing
    }

    package private(set) var state = State.closed(failures: 0)
    package var configuration: Configuration
    private var lastFailure: Timestamp?
    /// Posts up to this number belong to the last failure.
    private var lastRound: UInt64 = 0
    /// The failures in a row that no notification explains.
    private var unexplainedCount = 0
    private var suspicions = Suspicions()
    /// The recipients for which a post worked lately, the latest last.
    private var recipients: [PushRecipient] = []

    package init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    package var isClosed: Bool {
        if case .closed = state { true } else { false }
    }

    /// Whether no post can go out now, so that waiting for one is futile.
    package func isOpen(at now: Timestamp) -> Bool {
        if case .open(let until, _) = state { now < until && !isExplained } else { false }
    }

    /// Whether fewer suspects than the limit explain all failures in a row.
    private var isExplained: Bool { unexplainedCount == 0 && suspicions.count < configuration.failureLimit }

    /// Whether a post for this recipient may be the probe before the pause is over.
    package func admitsEarlyProbe(for recipient: Suspect) -> Bool {
        if case .open = state { isExplained && !suspicions.contains(recipient) } else { false }
    }

    package func admission(at now: Timestamp) -> Admission {
        switch state {
        case .closed: .posts
        case .open(let until, _): now >= until ? .probe : .nothing
        case .halfOpen: .nothing
        }
    }

    /// The post with this number is the probe.
    package mutating func began(probe: UInt64) {
        guard case .open(_, let attempt) = state else { return }
        state = .halfOpen(probe: probe, attempt: attempt)
    }

    /// Lets a probe go out at once while the breaker is open, because the operator reports that gorush works again.
    package mutating func hasten(at now: Timestamp) {
        guard case .open(let until, let attempt) = state, until > now else { return }
        state = .open(until: now, attempt: attempt)
    }

    package mutating func worked() {
        state = .closed(failures: 0)
    }

    /// - Parameter recipients: those of the post.
    package mutating func worked(for recipients: some Sequence<PushRecipient>) {
        worked()
        guard configuration.recipientLimit > 0 else { return }
        for recipient in recipients {
            self.recipients.removeAll { $0 == recipient }
            self.recipients.append(recipient)
        }
        self.recipients = self.recipients.suffix(configuration.recipientLimit)
    }

    /// Whether a post worked for this recipient, which is remembered.
    package func hasWorked(for recipient: PushRecipient) -> Bool { recipients.contains(recipient) }

    /// Records a post that ended without evidence about gorush.
    package mutating func endedWithoutEvidence(_ number: UInt64, at now: Timestamp) {
        guard case .halfOpen(number, let attempt) = state else { return }
        state = .open(until: now, attempt: attempt)
    }

    /// - Parameters:
    ///   - number: the number of the failed post. Posts are numbered in the order in which they begin.
    ///   - latest: the number of the post that began last.
    ///   - retryAfter: the pause that gorush asks for.
    ///   - suspects: those of the post, if one of them may be the cause; otherwise empty.
    package mutating func failed(
        _ number: UInt64, latest: UInt64, retryAfter: Duration? = nil, suspects: Set<Suspect> = [], at now: Timestamp,
        using generator: inout some RandomNumberGenerator
    ) {
        let asked = min(retryAfter ?? .zero, configuration.longestRetryAfter)
        let isNews = number > lastRound
        let isInARow = lastFailure.map { now.since($0) <= configuration.failureMemory } ?? false
        if isNews {
            lastRound = latest
            lastFailure = now
        }
        if case .closed(let failures) = state, failures == 0 || isNews && !isInARow {
            state = .closed(failures: 0)
            unexplainedCount = 0
            suspicions = Suspicions()
        }
        if suspects.isEmpty {
            if isNews || asked > .zero { unexplainedCount += 1 }
        } else if isNews {
            suspicions.add(suspects)
        }
        switch state {
        case .closed(let failures):
            let count = isNews ? failures + 1 : failures
            let isGorushs = unexplainedCount + suspicions.count >= configuration.failureLimit || count >= configuration.suspectFailureLimit
            if isGorushs || asked > .zero {
                state = .open(until: now + max(asked, pause(attempt: 0, using: &generator)), attempt: 0)
            } else {
                state = .closed(failures: count)
            }
        case .open(let until, let attempt):
            state = .open(until: max(until, now + asked), attempt: attempt)
        case .halfOpen(number, let attempt):
            let next = suspects == [.strangers] ? attempt : attempt + 1
            state = .open(until: now + max(asked, pause(attempt: next, using: &generator)), attempt: next)
        case .halfOpen:
            break
        }
    }

    private func pause(attempt: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        configuration.backoff.delay(afterFailures: attempt + 1, jitter: .random(in: 0...1, using: &generator))
    }
}
