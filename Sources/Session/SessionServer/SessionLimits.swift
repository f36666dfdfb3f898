import NodeMetrics
import SessionProtocol
package import RateLimits
import Core
import Waku

/// Applies rate limits to Session, under the option names of Status' limits, and counts refusals. Thread-safe. Limits apply per protocol.
///
/// | limit | applies to |
/// |---|---|
/// | `installations-by-key` | devices of an account |
/// | `registration-count` | subscriptions |
/// | `store-mib` | the store, of all protocols |
/// | `new-registrations` | new subscriptions |
/// | `notifications-by-target` | notifications for a subscription |
package final class SessionLimits: Sendable {
    let limiter: RateLimits

    package init(_ limits: Limits) {
        limiter = RateLimits(limits)
    }

    /// Sets the counters for refusals.
    func count(with counters: Counters) {
        limiter.reportRefusals { refusal, _ in
            if let counter = Counter(refusal) { counters.add(counter) }
        }
    }

    /// Replaces the limits. All senders start with full rates.
    package func replace(_ limits: Limits) {
        limiter.replace(limits)
    }

    /// Sets the number of nodes that share the rates; this node applies its share.
    func share(among nodeCount: Int) {
        limiter.share(among: nodeCount)
    }

    var maximumDevicesPerAccount: Int { limiter.limits.installationsByKey ?? .max }
    var countsSubscriptions: Bool { limiter.countsRegistrations }

    /// Counts a new subscription if limits allow it.
    ///
    /// - Returns: The error if limits refuse it; nil otherwise.
    func admitsNew(at now: Timestamp) -> RequestError? {
        limiter.refusesNew(at: now) ? .limited : nil
    }

    /// - Parameters:
    ///   - row: the row of the subscription.
    ///   - now: the current time.
    func admitsNotification(for row: Int64, at now: Timestamp) -> Bool {
        let name = withUnsafeBytes(of: row, Array.init)
        return !limiter.refuses { $0.notification(for: name, at: now) }
    }

    func counted(subscriptions count: Int) {
        limiter.counted(registrations: count)
    }

    /// Updates the number of subscriptions after requests: new ones were counted when they were admitted.
    func count(_ applied: AppliedRequests) {
        for case .removed(true) in applied.answers { limiter.removedRegistration() }
        for _ in 0..<applied.replacedCount { limiter.removedRegistration() }
    }
}

extension Counter {
    /// nil for limits that Session does not have.
    fileprivate init?(_ refusal: RateLimitTable.Refusal) {
        switch refusal {
        case .registrationCount: self = .sessionLimitSubscriptions
        case .storeMiB: self = .sessionLimitStoreMiB
        case .newRegistrations: self = .sessionLimitNewSubscriptions
        case .notificationsByTarget: self = .sessionLimitNotifications
        case .messagesBySender, .registrationsBySender, .queriesBySender, .requestsBySender, .queriesByTarget, .registrations, .queries,
            .requests, .answerKiBByTarget, .answerKiB, .wholeAnswersByTarget, .notifications, .installationsByKey, .denied, .topicKeys,
            .segments:
            return nil
        }
    }
}
