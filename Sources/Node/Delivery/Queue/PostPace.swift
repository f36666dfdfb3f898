import Core
import Waku

/// How much gorush is known to take: how many notifications may go into a post, and whether another post may go out while one has been
/// unanswered for too long. Posts, answers and time come in; limits go out.
///
///     normal ──(a post is unanswered for `slowAfter`)──▶ slow, with an allowance of 1
///       ▲                                                 │  a post takes 1 of the allowance
///       │                                                 │  an answer adds 1, one within `slowAfter` adds 2
///       └──(an answer, and no other post is overdue)──────┘  a failure makes it at least 1
///
/// - A post without an answer has an unknown outcome. While it is overdue, the only evidence of what gorush takes are answers to other posts:
///   one small post may look for that, and each answer pays for the next posts. A gorush that answers nothing gets nothing more.
/// - The number of notifications in a post follows an exponentially weighted average of the time that gorush took for each, so that a post
///   is answered within ``DeliveryQueue/Configuration/batchTarget``. Before the first answer ``DeliveryQueue/Configuration/assumedTime`` counts.
struct PostPace: Sendable {
    enum State: Hashable, Sendable {
        case normal
        case slow(Slow)
    }

    struct Slow: Hashable, Sendable {
        /// When the post that became overdue first was sent.
        let since: Timestamp
        /// Posts that may still go out.
        var allowance: Int
        /// The last answer to any post since.
        var lastAnswer: Timestamp?
    }

    private struct Post {
        let count: Int
        let sent: Timestamp
    }

    /// The weight of the newest measurement. A half follows a change within a few posts, in both directions.
    private static let weight = 0.5

    private(set) var state = State.normal
    private let configuration: DeliveryQueue.Configuration
    /// Requests that have left. How long it took to load and mark what is in them says nothing of gorush.
    private var unanswered: [UInt64: Post] = [:]
    /// Seconds; nil before the first answer.
    private var timePerNotification: Double?

    init(configuration: DeliveryQueue.Configuration) {
        self.configuration = configuration
    }

    // MARK: Limits

    /// Whether a post may go out.
    var admitsPost: Bool {
        if case .slow(let slow) = state { slow.allowance > 0 } else { true }
    }

    /// Notifications in the next post, at least one.
    func batchLimit(at now: Timestamp) -> Int {
        var time = timePerNotification ?? Self.seconds(configuration.assumedTime)
        var limit = configuration.maximumBatchCount
        if case .slow(let slow) = state, slow.lastAnswer == nil {
            limit = min(limit, configuration.probeBatchCount)
            // Until something is answered, it takes at least what the overdue posts have taken so far.
            for post in unanswered.values where isOverdue(post, at: now) { time = max(time, Self.time(of: post, until: now)) }
        }
        guard time > 0 else { return max(1, limit) }
        return max(1, Int(min(Double(limit), Self.seconds(configuration.batchTarget) / time)))
    }

    /// When a post becomes overdue, if it is not answered before; nil when nothing is to change.
    var nextChange: Timestamp? {
        guard state == .normal else { return nil }
        return unanswered.values.map(\.sent).min().map { $0 + configuration.slowAfter }
    }

    /// What is unanswered: how many posts, and how long the oldest of them.
    func outstanding(at now: Timestamp) -> (count: Int, age: Duration) {
        (unanswered.count, unanswered.values.map(\.sent).min().map { max(.zero, now.since($0)) } ?? .zero)
    }

    // MARK: What happens

    /// Time passed.
    mutating func advance(to now: Timestamp) {
        guard state == .normal, let oldest = unanswered.values.map(\.sent).min(), now.since(oldest) >= configuration.slowAfter else {
            return
        }
        state = .slow(Slow(since: oldest, allowance: 1))
    }

    /// A post is prepared: its contents are loaded next.
    mutating func began() {
        guard case .slow(var slow) = state else { return }
        slow.allowance = max(0, slow.allowance - 1)
        state = .slow(slow)
    }

    /// The contents are loaded, and the request leaves now.
    mutating func sent(_ id: UInt64, count: Int, at now: Timestamp) {
        unanswered[id] = Post(count: max(1, count), sent: now)
    }

    /// The first word about a post counts.
    mutating func ended(_ id: UInt64, _ outcome: DeliveryQueue.Outcome, at now: Timestamp) {
        guard let post = unanswered.removeValue(forKey: id) else {
            if case .notPosted = outcome { restoreAllowance() }
            return
        }
        let time = Self.time(of: post, until: now)
        let isLate = isOverdue(post, at: now)
        switch outcome {
        case .accepted:
            timePerNotification = timePerNotification.map { $0 + Self.weight * (time - $0) } ?? time
            answered(isLate: isLate, at: now)
        case .refused:
            // Refused without having tried: how long that took says nothing of deliveries.
            answered(isLate: isLate, at: now)
        case .failed:
            // It takes at least as long as it was waited for. A failure at once says nothing.
            if isLate { timePerNotification = max(timePerNotification ?? 0, time) }
            restoreAllowance()
        case .notPosted:
            restoreAllowance()
        }
    }

    /// An operator says that gorush is well again.
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

    /// A post that ended without an answer may be followed by another, however many end at once.
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
