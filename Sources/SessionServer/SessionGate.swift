import NodeMetrics
import SessionProtocol
package import StatusRules
import Synchronization
import Waku

/// Applies the limits that Session shares with Status, from any thread, and counts what they refuse. They count for each protocol by itself.
///
/// | limit | of Session |
/// |---|---|
/// | `installations-by-key` | devices of an account |
/// | `registration-count` | subscriptions |
/// | `new-registrations` | new subscriptions |
/// | `notifications-by-target` | notifications for a subscription |
package final class SessionGate: Sendable {
    /// The key of the single bucket for new subscriptions.
    private struct All: Hashable, Sendable {}

    private struct State {
        let limits: Limits
        var newSubscriptions: RateLimiter<All>?
        /// By subscription row.
        var notifications: RateLimiter<Int64>?

        init(_ limits: Limits) {
            self.limits = limits
            newSubscriptions = limits.newRegistrations.map { RateLimiter($0) }
            notifications = limits.notificationsByTarget.map { RateLimiter($0) }
        }
    }

    private let state: Mutex<State>
    private let nodeCounters = Mutex<Counters?>(nil)
    /// Subscriptions, where that is limited: counted now and then, and with each new one.
    private let subscriptionCount = Atomic(0)

    package init(_ limits: Limits) {
        state = Mutex(State(limits))
    }

    /// Where refusals are counted.
    func count(with counters: Counters) {
        nodeCounters.withLock { $0 = counters }
    }

    /// Other limits from now on.
    package func replace(_ limits: Limits) {
        state.withLock { if $0.limits != limits { $0 = State(limits) } }
    }

    var maximumDevicesPerAccount: Int { state.withLock { $0.limits.installationsByKey ?? .max } }
    var countsSubscriptions: Bool { state.withLock { $0.limits.registrationCount != nil } }

    /// - Returns: Why there can be no other subscription now; nil if there can.
    func admitsNew(at now: Timestamp) -> RequestError? {
        let count = subscriptionCount.load(ordering: .relaxed)
        let refusal = state.withLock { state -> Counter? in
            if let limit = state.limits.registrationCount, count >= limit { return .sessionLimitSubscriptions }
            return state.newSubscriptions?.admits(All(), at: now) ?? true ? nil : .sessionLimitNewSubscriptions
        }
        guard let refusal else { return nil }
        nodeCounters.withLock(\.self)?.add(refusal)
        return RequestError(.error, "the server takes no more subscriptions at present")
    }

    /// - Parameters:
    ///   - row: of the subscription.
    ///   - now: the time.
    func admitsNotification(for row: Int64, at now: Timestamp) -> Bool {
        guard !state.withLock({ $0.notifications?.admits(row, at: now) ?? true }) else { return true }
        nodeCounters.withLock(\.self)?.add(.sessionLimitNotifications)
        return false
    }

    func counted(subscriptions count: Int) {
        subscriptionCount.store(count, ordering: .relaxed)
    }

    /// Keeps the number of subscriptions current.
    func count(_ answers: [RequestAnswer]) {
        for answer in answers {
            switch answer {
            case .added: subscriptionCount.add(1, ordering: .relaxed)
            case .removed(true): subscriptionCount.subtract(1, ordering: .relaxed)
            case .updated, .removed(false), .failed: break
            }
        }
    }
}
