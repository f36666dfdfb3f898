import NodeMetrics
import PushNode
import StatusProtocol
package import StatusRules
import Synchronization
import Waku

/// Applies the limits to messages of version 0.1, from any thread, and counts what they refuse. Limits count for each protocol by itself.
package final class V01Gate: Sendable {
    private let admission: Mutex<Admission>
    /// Nothing is limited: no lock is taken then.
    private let isOpen: Atomic<Bool>
    private let nodeCounters = Mutex<Counters?>(nil)
    /// Registered devices, where that is limited: counted now and then, and with each record.
    private let deviceCount = Atomic(0)

    package init(_ limits: Limits) {
        admission = Mutex(Admission(limits))
        isOpen = Atomic(limits == .none)
    }

    /// Where refusals are counted.
    func count(with counters: Counters) {
        nodeCounters.withLock { $0 = counters }
    }

    /// Other limits from now on. Senders that were over the old ones begin anew.
    package func replace(_ limits: Limits) {
        admission.withLock { if $0.limits != limits { $0 = Admission(limits) } }
        isOpen.store(limits == .none, ordering: .releasing)
    }

    /// - Throws: `Drop` when a limit is exceeded.
    func admit(_ ask: (inout Admission) -> Admission.Refusal?) throws(Drop) {
        if refuses(ask) { throw Drop(.droppedLimited) }
    }

    func refuses(_ ask: (inout Admission) -> Admission.Refusal?) -> Bool {
        guard !isOpen.load(ordering: .acquiring), let refusal = admission.withLock({ ask(&$0) }) else { return false }
        nodeCounters.withLock(\.self)?.add(Counter(refusal))
        return true
    }

    /// Whether limits refuse a record.
    ///
    /// - Parameters:
    ///   - claim: Whose record it is.
    ///   - devices: Of the record.
    ///   - isNew: The account is not registered at present.
    ///   - now: When it came.
    func refusesRecord(_ claim: V01.RegisterClaim, devices: Int, isNew: Bool, at now: Timestamp) -> Bool {
        guard !isOpen.load(ordering: .acquiring) else { return false }
        let limits = admission.withLock(\.limits)
        guard limits.allows(KeyHash(of: claim.sender)) else { return refuses { _ in .denied } }
        if let limit = limits.installationsByKey, devices > limit { return refuses { _ in .installationsByKey } }
        guard isNew else { return false }
        let count = deviceCount.load(ordering: .relaxed) + devices - 1
        let isRefused = refuses { $0.newRegistration(installations: 0, count: count, at: now) }
        if !isRefused { deviceCount.add(devices, ordering: .relaxed) }
        return isRefused
    }

    var countsDevices: Bool { admission.withLock(\.limits).registrationCount != nil }

    func counted(devices count: Int) {
        deviceCount.store(count, ordering: .relaxed)
    }
}
