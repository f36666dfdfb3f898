import Synchronization
package import Waku

/// An ``Admission`` for any thread, which reports what it refuses. Each protocol has one: limits count for each protocol by itself.
package final class LimitGate: Sendable {
    private let admission: Mutex<Admission>
    /// The limits of all nodes together, and how many these are.
    private let whole: Mutex<(limits: Limits, nodeCount: Int)>
    /// Whether there are no limits, so that no lock is needed.
    private let isOpen: Atomic<Bool>
    private let report = Mutex<(@Sendable (Admission.Refusal) -> Void)?>(nil)
    /// Registered devices, if that is limited: counted periodically, and increased with each new one.
    private let registrationCount = Atomic(0)

    package init(_ limits: Limits) {
        admission = Mutex(Admission(limits))
        whole = Mutex((limits, 1))
        isOpen = Atomic(limits == .none)
    }

    /// - Parameter body: called with each refusal, on the thread that asked.
    package func reportRefusals(to body: @escaping @Sendable (Admission.Refusal) -> Void) {
        report.withLock { $0 = body }
    }

    /// Replaces the limits. All senders start with full rates.
    package func replace(_ limits: Limits) {
        whole.withLock { whole in
            whole.limits = limits
            apply(whole)
        }
    }

    /// So many nodes share the messages: this one counts its part. When the number changes, all senders start with full rates.
    package func share(among nodeCount: Int) {
        whole.withLock { whole in
            whole.nodeCount = nodeCount
            apply(whole)
        }
    }

    private func apply(_ whole: (limits: Limits, nodeCount: Int)) {
        let limits = whole.limits.share(among: whole.nodeCount)
        admission.withLock { if $0.limits != limits { $0 = Admission(limits) } }
        isOpen.store(limits == .none, ordering: .releasing)
    }

    package var limits: Limits { admission.withLock(\.limits) }
    package var isUnlimited: Bool { isOpen.load(ordering: .acquiring) }

    package func refuses(_ ask: (inout Admission) -> Admission.Refusal?) -> Bool {
        guard !isUnlimited, let refusal = admission.withLock({ ask(&$0) }) else { return false }
        report.withLock(\.self)?(refusal)
        return true
    }

    // MARK: New registrations

    package var countsRegistrations: Bool { limits.registrationCount != nil }

    package func counted(registrations count: Int) {
        registrationCount.store(count, ordering: .relaxed)
    }

    /// One ended.
    package func removedRegistration() {
        registrationCount.subtract(1, ordering: .relaxed)
    }

    /// Whether limits refuse devices that are not registered now. If not, they are counted.
    ///
    /// - Parameters:
    ///   - devices: how many.
    ///   - installations: number of registered installations of the key; 0 if it is not limited.
    ///   - now: when they came in.
    package func refusesNew(devices: Int = 1, installations: Int = 0, at now: Timestamp) -> Bool {
        let count = registrationCount.load(ordering: .relaxed) + devices - 1
        let isRefused = refuses { $0.newRegistration(installations: installations, count: count, at: now) }
        if !isRefused { registrationCount.add(devices, ordering: .relaxed) }
        return isRefused
    }
}
