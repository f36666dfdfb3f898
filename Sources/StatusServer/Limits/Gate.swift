import NodeMetrics
import PushNode
import StatusProtocol
package import StatusRules
import Synchronization
import Waku

/// A thread-safe `Admission` that counts refusals.
package final class Gate: Sendable {
    private let admission: Mutex<Admission>
    /// Whether there are no limits, so that no lock is needed.
    private let isOpen: Atomic<Bool>
    private let counters = Mutex<Counters?>(nil)
    /// Number of registered devices, if that is limited: counted periodically, and increased with each new one.
    private let registrationCount = Atomic(0)

    package init(_ limits: Limits) {
        admission = Mutex(Admission(limits))
        isOpen = Atomic(limits == .none)
    }

    /// Sets the counters for refusals.
    func count(with counters: Counters) {
        self.counters.withLock { $0 = counters }
    }

    /// Replaces the limits. All senders start with full rates.
    package func replace(_ limits: Limits) {
        admission.withLock { if $0.limits != limits { $0 = Admission(limits) } }
        isOpen.store(limits == .none, ordering: .releasing)
    }

    /// - Throws: ``Drop`` if a limit is exceeded.
    func admit(_ ask: (inout Admission) -> Admission.Refusal?) throws(Drop) {
        if refuses(ask) { throw Drop(.droppedLimited) }
    }

    func refuses(_ ask: (inout Admission) -> Admission.Refusal?) -> Bool {
        guard !isOpen.load(ordering: .acquiring), let refusal = admission.withLock({ ask(&$0) }) else { return false }
        counters.withLock(\.self)?.add(refusal.counter)
        return true
    }

    /// Whether the number of installations of a key is limited.
    var limitsInstallations: Bool { limits.installationsByKey != nil }

    /// - Parameters:
    ///   - key: the registrant.
    ///   - isNew: whether the installation is not registered now.
    ///   - installations: number of registered installations of this key; 0 if it is not limited.
    ///   - now: when it came in.
    func refusesRegistration(of key: KeyHash, isNew: Bool, installations: Int, at now: Timestamp) -> Bool {
        let limits = limits
        guard limits.allows(key) else { return refuses { _ in .denied } }
        guard isNew else { return false }
        let count = registrationCount.load(ordering: .relaxed)
        let isRefused = refuses { $0.newRegistration(installations: installations, count: count, at: now) }
        if !isRefused { registrationCount.add(1, ordering: .relaxed) }
        return isRefused
    }

    private var limits: Limits { admission.withLock(\.limits) }

    var countsRegistrations: Bool { limits.registrationCount != nil }

    func counted(registrations count: Int) {
        registrationCount.store(count, ordering: .relaxed)
    }
}

extension Admission.Refusal {
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
