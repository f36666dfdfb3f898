import NodeMetrics
import SessionProtocol
package import RateLimits
import Core
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
    let limiter: LimitGate

    package init(_ limits: Limits) {
        limiter = LimitGate(limits)
    }

    /// Where refusals are counted.
    func count(with counters: Counters) {
        limiter.reportRefusals { refusal in
            if let counter = Counter(refusal) { counters.add(counter) }
        }
    }

    /// Other limits from now on.
    package func replace(_ limits: Limits) {
        limiter.replace(limits)
    }

    /// Each of so many nodes admits its part of the rates.
    func share(among nodeCount: Int) {
        limiter.share(among: nodeCount)
    }

    var maximumDevicesPerAccount: Int { limiter.limits.installationsByKey ?? .max }
    var countsSubscriptions: Bool { limiter.countsRegistrations }

    /// - Returns: Why there can be no other subscription now; nil if there can: then it is counted.
    func admitsNew(at now: Timestamp) -> RequestError? {
        limiter.refusesNew(at: now) ? .limited : nil
    }

    /// - Parameters:
    ///   - row: of the subscription.
    ///   - now: the time.
    func admitsNotification(for row: Int64, at now: Timestamp) -> Bool {
        let name = withUnsafeBytes(of: row, Array.init)
        return !limiter.refuses { $0.notification(for: name, at: now) }
    }

    func counted(subscriptions count: Int) {
        limiter.counted(registrations: count)
    }

    /// Keeps the number of subscriptions current: new ones were counted when they were admitted.
    func count(_ answers: [RequestAnswer]) {
        for case .removed(true) in answers { limiter.removedRegistration() }
    }
}

extension Counter {
    /// nil for limits that Session does not have.
    fileprivate init?(_ refusal: Admission.Refusal) {
        switch refusal {
        case .registrationCount: self = .sessionLimitSubscriptions
        case .newRegistrations: self = .sessionLimitNewSubscriptions
        case .notificationsByTarget: self = .sessionLimitNotifications
        case .messagesBySender, .registrationsBySender, .queriesBySender, .requestsBySender, .queriesByTarget, .registrations, .queries,
            .requests, .answerKiBByTarget, .answerKiB, .installationsByKey, .denied:
            return nil
        }
    }
}
