import NodeMetrics
import NodeAPI
import StatusProtocol
package import RateLimits
import StatusRules
import Core
import Waku

/// The rate limits of the Status protocol.
package final class StatusLimits: Sendable {
    let limiter: RateLimits

    package init(_ limits: Limits) {
        limiter = RateLimits(limits)
    }

    /// Sets the counters for refusals.
    func count(with counters: Counters) {
        limiter.reportRefusals { counters.add($0.counter) }
    }

    /// Replaces the limits. All senders start with full rates.
    package func replace(_ limits: Limits) {
        limiter.replace(limits)
    }

    /// See ``ProtocolService/nodeCountChanged(_:)``.
    func share(among nodeCount: Int) {
        limiter.share(among: nodeCount)
    }

    /// - Parameters:
    ///   - isSegmented: whether the message is a segment: each node applies its limits to segments independently.
    ///   - isRetry: whether this is a retry: see ``NodeAPI/Incoming/isRetry``.
    ///   - ask: applies the limits.
    /// - Throws: ``Drop`` if a limit is exceeded.
    func admit(
        isSegmented: Bool = false, isRetry: Bool = false, _ ask: (inout RateLimitTable) -> RateLimitTable.Refusal?
    ) throws(Drop) {
        if limiter.refuses(isRetry: isRetry, ask) { throw Drop(.droppedLimited, isLeftToOthers: isSegmented) }
    }

    func refuses(_ ask: (inout RateLimitTable) -> RateLimitTable.Refusal?) -> Bool { limiter.refuses(ask) }

    /// Whether the number of installations of a key is limited.
    var limitsInstallations: Bool { limiter.limits.installationsByKey != nil }

    /// Whether limits refuse a registration. If not, a new installation is counted.
    ///
    /// - Parameters:
    ///   - key: the registrant.
    ///   - isNew: whether the installation is not registered now.
    ///   - installations: number of registered installations of this key; 0 if it is not limited.
    ///   - now: the time of receipt.
    func refusesRegistration(of key: KeyHash, isNew: Bool, installations: Int, at now: Timestamp) -> Bool {
        guard limiter.limits.allows(key) else { return refuses { _ in .denied } }
        return isNew && limiter.refusesNew(installations: installations, at: now)
    }

    var countsRegistrations: Bool { limiter.countsRegistrations }

    func counted(registrations count: Int) {
        limiter.counted(registrations: count)
    }
}

extension RateLimitTable.Refusal {
    fileprivate var counter: Counter {
        switch self {
        case .messagesBySender: .limitMessagesBySender
        case .registrationsBySender: .limitRegistrationsBySender
        case .queriesBySender: .limitQueriesBySender
        case .requestsBySender: .limitRequestsBySender
        case .queriesByTarget: .limitQueriesByTarget
        case .notificationsByTarget: .limitNotificationsByTarget
        case .newRegistrations: .limitNewRegistrations
        case .registrations: .limitRegistrations
        case .queries: .limitQueries
        case .requests: .limitRequests
        case .answerKiBByTarget: .limitAnswerKiBByTarget
        case .answerKiB: .limitAnswerKiB
        case .installationsByKey: .limitInstallationsByKey
        case .registrationCount: .limitRegistrationCount
        case .denied: .limitDenied
        }
    }
}
