package import Core
import Waku

/// Decides whether gorush is worth a post. Outcomes and time come in, an admission goes out; whoever holds it does the talking.
///
///     closed ──(failures in a row = limit, or gorush asks for a pause)──▶ open ◀────────(the probe fails)────────┐
///       ▲ ▲                                                               │  ▲                                   │
///       │ └────────(a post from before works)─────────────────────────────┤  └──(nothing was left to post)──┐    │
///       │                                                                 │                                 │    │
///       │                                                                 └──(time passed, a probe goes out)▶ half-open
///       └───────────────────────────────────────(a post works)─────────────────────────────────────────────────┘
///
/// - A post *works* when gorush answers it sensibly: a refusal of what is in it too.
/// - Posts that were on their way when a failure was counted belong to that failure: eight connections that break at once are one failure.
/// - A single broken connection opens nothing: three failures in a row do, each within a minute of the one before. A refused connection
///   comes to that in less than a second.
/// - While it is open nothing is posted; the pause doubles with each probe that fails, and is as long as gorush asks for (Retry-After).
/// - While it is half-open there is one small post.
package struct CircuitBreaker: Sendable {
    package struct Configuration: Sendable {
        /// Failures in a row that open it.
        package var failureLimit = 3
        /// A failure that lies back further than this is not in a row with the next.
        package var failureMemory: Duration = .seconds(60)
        /// How long it stays open, by the probes that failed.
        package var backoff = ExponentialBackoff(initial: .milliseconds(500), maximum: .seconds(5))
        /// However long gorush asks for.
        package var longestRetryAfter: Duration = .seconds(300)

        package init() {}
    }

    package enum State: Hashable, Sendable {
        /// - Parameter failures: in a row, below the limit.
        case closed(failures: Int)
        /// - Parameter attempt: probes that failed since it was closed.
        case open(until: Timestamp, attempt: Int)
        case halfOpen(probe: UInt64, attempt: Int)
    }

    /// What may go out.
    package enum Admission: Hashable, Sendable {
        case posts
        /// One small post; then ``began(probe:)``.
        case probe
        case nothing
    }

    package private(set) var state = State.closed(failures: 0)
    private let configuration: Configuration
    private var lastFailure: Timestamp?
    /// Posts up to this number belong to the last failure.
    private var lastRound: UInt64 = 0

    package init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
    }

    package var isClosed: Bool {
        if case .closed = state { true } else { false }
    }

    /// Whether whoever waits for a post now waits in vain.
    package func isOpen(at now: Timestamp) -> Bool {
        if case .open(let until, _) = state { now < until } else { false }
    }

    /// When a probe may go out, while it is open.
    package var opensAgainAt: Timestamp? {
        if case .open(let until, _) = state { until } else { nil }
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

    /// Somebody knows that gorush is well again: while it is open, a probe may go out at once.
    package mutating func hasten(at now: Timestamp) {
        guard case .open(let until, let attempt) = state, until > now else { return }
        state = .open(until: now, attempt: attempt)
    }

    package mutating func worked() {
        state = .closed(failures: 0)
    }

    /// A post ended without saying anything of gorush.
    package mutating func cameToNothing(_ number: UInt64, at now: Timestamp) {
        guard case .halfOpen(number, let attempt) = state else { return }
        state = .open(until: now, attempt: attempt)
    }

    /// - Parameters:
    ///   - number: of the post that failed. Posts are numbered in the order they begin.
    ///   - latest: of the post that began last.
    ///   - retryAfter: how long gorush asks to wait.
    package mutating func failed(
        _ number: UInt64, latest: UInt64, retryAfter: Duration?, at now: Timestamp, using generator: inout some RandomNumberGenerator
    ) {
        let asked = min(retryAfter ?? .zero, configuration.longestRetryAfter)
        let isNews = number > lastRound
        if isNews { lastRound = latest }
        switch state {
        case .closed(let failures):
            let isInARow = lastFailure.map { now.since($0) <= configuration.failureMemory } ?? false
            let count = isNews ? (isInARow ? failures : 0) + 1 : failures
            if isNews { lastFailure = now }
            if count >= configuration.failureLimit || asked > .zero {
                state = .open(until: now + max(asked, pause(attempt: 0, using: &generator)), attempt: 0)
            } else {
                state = .closed(failures: count)
            }
        case .open(let until, let attempt):
            state = .open(until: max(until, now + asked), attempt: attempt)
        case .halfOpen(number, let attempt):
            state = .open(until: now + max(asked, pause(attempt: attempt + 1, using: &generator)), attempt: attempt + 1)
        case .halfOpen:
            break
        }
    }

    private func pause(attempt: Int, using generator: inout some RandomNumberGenerator) -> Duration {
        configuration.backoff.delay(afterFailures: attempt + 1, jitter: .random(in: 0...1, using: &generator))
    }
}
