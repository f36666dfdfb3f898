import Core

/// Paces posts by gorush's answers: how many notifications go into a post, and whether another post may go out while one is overdue. Posts, answers
/// and time go in; limits come out.
///
///     normal ──(a post is unanswered for `slowAfter`)──▶ slow, with an allowance of 1
///       ▲                                                 │  a post takes 1 of the allowance
///       │                                                 │  an answer adds 1, one within `slowAfter` adds 2
///       └──(an answer, and no other post is overdue)──────┘  a failure makes it at least 1
///
/// - An unanswered post has an unknown outcome. While one is overdue, only answers to other posts show that gorush still works: one small post may
///   probe that, and each answer permits further posts. A gorush that answers nothing gets no more posts.
/// - The number of notifications in a post follows an exponentially weighted average of the time that gorush took for each, so that a post
///   is answered within ``DeliveryQueue/Configuration/batchTarget``. Before the first answer ``DeliveryQueue/Configuration/assumedTime`` counts.
struct PostPace: Sendable {
    enum State: Hashable, Sendable {
        case normal
        case slow(Slow)
    }

    struct Slow: Hashable, Sendable {
        /// The time at which the first overdue post was sent.
        let since: Timestamp
        /// The number of posts that may still go out.
        var allowance: Int
        /// The time of the last answer to any post since then.
        var lastAnswer: Timestamp?
    }

    private struct Post {
        let count: Int
        let sent: Timestamp
    }

    /// The weight of the newest measurement. One half follows a change within a few posts, in both directions.
    private static let weight = 0.5

    private(set) var state = State.normal
    private let configuration: DeliveryQueue.Configuration
    /// The requests that have left. The time for loading and marking their contents does not count, as it says nothing about gorush.
    private var unanswered: [UInt64: Post] = [:]
    /// The average time per notification in seconds; nil before the first answer.
    private var timePerNotification: Double?

    init(configuration: DeliveryQueue.Configuration) {
        self.configuration = configuration
    }

    // MARK: Limits

    /// Whether a post may go out.
    var admitsPost: Bool {
        if case .slow(let slow) = state { slow.allowance > 0 } else { true }
    }

    /// The maximum number of notifications in the next post, at least one.
    func batchLimit(at now: Timestamp) -> Int {
        var time = timePerNotification ?? Self.seconds(configuration.assumedTime)
        var limit = configuration.maximumBatchCount
        if case .slow(let slow) = state, slow.lastAnswer == nil {
            limit = min(limit, configuration.probeBatchCount)
            // Until an answer, the time per notification is at least that of the overdue posts so far.
            for post in unanswered.values where isOverdue(post, at: now) { time = max(time, Self.time(of: post, until: now)) }
        }
        guard time > 0 else { return max(1, limit) }
        return max(1, Int(min(Double(limit), Self.seconds(configuration.batchTarget) / time)))
    }

    /// The time at which the oldest unanswered post becomes overdue; nil without one, or while slow.
    var nextChange: Timestamp? {
        guard state == .normal else { return nil }
        return unanswered.values.map(\.sent).min().map { $0 + configuration.slowAfter }
    }

    /// The number of unanswered posts, and the age of the oldest.
    func outstanding(at now: Timestamp) -> (count: Int, age: Duration) {
        (unanswered.count, unanswered.values.map(\.sent).min().map { max(.zero, now.since($0)) } ?? .zero)
    }

    // MARK: Events

    /// Becomes slow when a post is overdue.
    mutating func advance(to now: Timestamp) {
        guard state == .normal, let oldest = unanswered.values.map(\.sent).min(), now.since(oldest) >= configuration.slowAfter else {
            return
        }
        state = .slow(Slow(since: oldest, allowance: 1))
    }

    /// Records that a post is prepared; its contents are loaded next.
    mutating func began() {
        guard case .slow(var slow) = state else { return }
        slow.allowance = max(0, slow.allowance - 1)
        state = .slow(slow)
    }

    /// Records that the contents are loaded and the request leaves now.
    mutating func sent(_ id: UInt64, count: Int, at now: Timestamp) {
        unanswered[id] = Post(count: max(1, count), sent: now)
    }

    /// Records the end of a post; only the first call for a post counts, except that one that was not posted may restore the allowance.
    mutating func ended(_ id: UInt64, _ outcome: DeliveryQueue.Outcome, at now: Timestamp) {
        guard let post = unanswered.removeValue(forKey: id) else {
            if outcome == .notPosted || outcome == .unpostable { restoreAllowance() }
            return
        }
        let time = Self.time(of: post, until: now)
        let isLate = isOverdue(post, at: now)
        switch outcome {
        case .accepted:
            timePerNotification = timePerNotification.map { $0 + Self.weight * (time - $0) } ?? time
            answered(isLate: isLate, at: now)
        case .refused:
            // A refusal comes before any delivery, so its duration does not count.
            answered(isLate: isLate, at: now)
        case .failed, .unclear:
            // A late failure shows the minimum time needed. An immediate failure shows nothing.
            if isLate { timePerNotification = max(timePerNotification ?? 0, time) }
            restoreAllowance()
        case .notPosted, .unpostable:
            restoreAllowance()
        }
    }

    /// Allows another post, because the operator reports that gorush works again.
    mutating func hasten() {
        restoreAllowance()
    }

    private mutating func answered(isLate: Bool, at now: Timestamp) {
        guard case .slow(var slow) = state else { return }
        guard unanswered.values.contains(where: { isOverdue($0, at: now) }) else {
            state = .normal
            return
        }
        slow.allowance = min(configuration.maximumBatchesInFlight, slow.allowance + (isLate ? 1 : 2))
        slow.lastAnswer = now
        state = .slow(slow)
    }

    /// After posts that ended without an answer, one more may go out, however many ended at once.
    private mutating func restoreAllowance() {
        guard case .slow(var slow) = state else { return }
        slow.allowance = max(1, slow.allowance)
        state = .slow(slow)
    }

    private func isOverdue(_ post: Post, at now: Timestamp) -> Bool {
        now.since(post.sent) >= configuration.slowAfter
    }

    private static func time(of post: Post, until now: Timestamp) -> Double {
        max(0, seconds(now.since(post.sent))) / Double(max(1, post.count))
    }

    private static func seconds(_ duration: Duration) -> Double { duration / .seconds(1) }
}
