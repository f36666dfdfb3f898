import Core

/// A push service's refusals, in virtual time, so that strangers can't use the node to bother a server that is none.
///
///     unproven ──(refusals of 50 endpoints)──▶ paused for 10 min, 20 min, …, 24 h ──(time passed)──▶ unproven
///        │ ▲
///        ▼ └──(24 h passed since the last acceptance)──┐
///     proven ──────────────────────────────────────────┘
///
/// A push service that accepts messages is proven by the first: refusals no longer pause it, because strangers can cause them and others would wait.
///
/// Each post takes one of an allowance of `burst` that refills at `rate`.
struct OriginStanding: Sendable {
    struct Configuration: Sendable {
        /// The number of different endpoints whose refusal in a row pauses the origin.
        let refusalLimit = 50
        var pause = Duration.seconds(600)
        let longestPause = Duration.seconds(24 * 3600)
        /// How long an acceptance proves that it is a push service.
        let proof = Duration.seconds(24 * 3600)
        /// A later answer is as none for ``isResponsive(at:)``.
        var answerLimit = Duration.seconds(10)
        /// Posts a second.
        var rate = 100.0
        var burst = 1000.0
    }

    private let configuration: Configuration
    /// Hashes of the endpoints that were refused since the last pause; at most the limit, and none while it is proven.
    private var refused: Set<Int> = []
    private var pauseCount = 0
    private var pausedUntil: Timestamp?
    private var provenUntil: Timestamp?
    /// Whether its last post had no answer in time.
    private var isLate = false
    /// The allowance at `refilled`.
    private var tokens: Double
    private var refilled: Timestamp?

    init(_ configuration: Configuration) {
        self.configuration = configuration
        tokens = configuration.burst
    }

    func isPaused(at now: Timestamp) -> Bool { pausedUntil.map { now < $0 } ?? false }

    func isProven(at now: Timestamp) -> Bool { provenUntil.map { now < $0 } ?? false }

    /// Whether it is proven and answers in time, so that its posts hold a place for a short time only: see ``OriginPlaces``.
    func isResponsive(at now: Timestamp) -> Bool { isProven(at: now) && !isLate }

    mutating func accepted(at now: Timestamp) {
        refused = []
        pauseCount = 0
        provenUntil = now + configuration.proof
    }

    /// Records the end of a post.
    ///
    /// - Parameter time: how long the answer took; nil without an answer.
    mutating func answered(after time: Duration?, isAccepted: Bool) {
        guard let time, time <= configuration.answerLimit else { return isLate = true }
        // An error, as of a subscription that a stranger made, says little of other posts.
        if isAccepted { isLate = false }
    }

    /// Records that it accepted a message before this process started, or one of another node. Returns whether that was unknown.
    mutating func acceptedBefore(at now: Timestamp) -> Bool {
        guard !isProven(at: now), !isLate else { return false }
        accepted(at: now)
        return true
    }

    /// - Parameter endpoint: a hash of the endpoint.
    /// - Returns: whether this pauses the origin.
    mutating func refused(endpoint: Int, at now: Timestamp) -> Bool {
        guard !isPaused(at: now), !isProven(at: now) else { return false }
        refused.insert(endpoint)
        guard refused.count >= configuration.refusalLimit else { return false }
        refused = []
        pausedUntil = now + min(configuration.pause * (1 << min(pauseCount, 20)), configuration.longestPause)
        pauseCount += 1
        return true
    }

    /// The number of posts that may go out now, and when there will be more.
    mutating func allowance(at now: Timestamp) -> DeliveryQueue.Allowance {
        if let pausedUntil, now < pausedUntil { return DeliveryQueue.Allowance(count: 0, resumes: pausedUntil) }
        refill(at: now)
        // The remainder of a token may be lost to rounding.
        let next = now + .nanoseconds(Int64(max(1, (1 - tokens) / configuration.rate * 1e9)) + 1)
        return DeliveryQueue.Allowance(count: Int(tokens), resumes: next)
    }

    /// Takes posts that went out from the allowance.
    mutating func posted(_ count: Int, at now: Timestamp) {
        refill(at: now)
        tokens -= Double(count)
    }

    private mutating func refill(at now: Timestamp) {
        let elapsed = refilled.map { max(0, now.since($0) / .seconds(1)) } ?? 0
        tokens = min(configuration.burst, tokens + elapsed * configuration.rate)
        refilled = now
    }

    /// Whether it need not be remembered: it would be the same if made anew.
    mutating func isForgettable(at now: Timestamp) -> Bool {
        refill(at: now)
        return refused.isEmpty && pauseCount == 0 && !isProven(at: now) && tokens >= configuration.burst
    }
}
