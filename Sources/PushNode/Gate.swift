import NodeMetrics
import PushServer
import StatusProtocol
import Synchronization
import Waku

/// Asks ``Admission`` from any thread, and counts what it refuses.
final class Gate: Sendable {
    private let admission: Mutex<Admission>
    /// Nothing is limited: no lock is taken then.
    private let isOpen: Atomic<Bool>
    private let counters: Counters
    /// Registrations in force, where that is limited: counted now and then, and with each new one.
    private let registrationCount = Atomic(0)

    init(_ limits: Limits, counters: Counters) {
        self.counters = counters
        admission = Mutex(Admission(limits))
        isOpen = Atomic(limits == .none)
    }

    /// Other limits from now on. Who was beyond the old ones begins anew.
    func replace(_ limits: Limits) {
        admission.withLock { if $0.limits != limits { $0 = Admission(limits) } }
        isOpen.store(limits == .none, ordering: .releasing)
    }

    /// - Throws: ``Drop`` for a message that is one too many.
    func admit(_ ask: (inout Admission) -> Admission.Refusal?) throws(Drop) {
        if refuses(ask) { throw Drop(.droppedLimited) }
    }

    func refuses(_ ask: (inout Admission) -> Admission.Refusal?) -> Bool {
        guard !isOpen.load(ordering: .acquiring), let refusal = admission.withLock({ ask(&$0) }) else { return false }
        counters.add(refusal.counter)
        return true
    }

    /// - Parameters:
    ///   - isNew: the installation is not registered at present.
    ///   - installations: of this key, in force; asked for only if it matters.
    func refusesRegistration(of key: KeyHash, isNew: Bool, installations: () throws -> Int, at now: Timestamp) rethrows -> Bool {
        let limits = limits
        guard limits.welcomes(key) else { return refuses { _ in .unwelcome } }
        guard isNew else { return false }
        let installations = limits.installationsByKey == nil ? 0 : try installations()
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
        case .unwelcome: .limitUnwelcome
        }
    }
}
