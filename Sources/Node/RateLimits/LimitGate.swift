import Synchronization
package import Core

/// An ``Admission`` for any thread, which reports what it refuses. Each protocol has one: limits count for each protocol by itself.
package final class LimitGate: Sendable {
    private let admission: Mutex<Admission>
    /// The limits of all nodes together, and how many these are.
    private let whole: Mutex<(limits: Limits, nodeCount: Int)>
    /// Whether there are no limits, so that no lock is needed.
    private let isOpen: Atomic<Bool>
    /// nil: no other node has this one's identity.
    private let exchange = Mutex<TakeExchange?>(nil)
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

    /// Limits that are too low to divide are counted together with other nodes from now on, while there are any.
    package func exchangeTakes(by exchange: TakeExchange) {
        self.exchange.withLock { $0 = exchange }
        whole.withLock { apply($0) }
    }

    /// Another node has taken this.
    ///
    /// - Parameter name: ``SharedTake/name``. One that this release does not know is left out.
    package func takenElsewhere(_ name: String, cost: Int, at now: Timestamp) {
        guard let take = SharedTake(name: name, cost: cost) else { return }
        admission.withLock { $0.note(take, at: now) }
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
        let exchange = whole.nodeCount > 1 ? exchange.withLock(\.self) : nil
        let shared = exchange == nil ? [] : whole.limits.tooLowToDivide
        admission.withLock { admission in
            guard admission.limits != limits || admission.sharedLimits != shared else { return }
            admission = exchange.map { Admission(limits, sharing: shared, by: $0.name, after: admission) } ?? Admission(limits)
        }
        isOpen.store(limits == .none, ordering: .releasing)
    }

    package var limits: Limits { admission.withLock(\.limits) }
    package var isUnlimited: Bool { isOpen.load(ordering: .acquiring) }

    /// - Parameter isLaterTurn: it may have been counted before, at this or another node: what nodes count together refuses it not.
    package func refuses(isLaterTurn: Bool = false, _ ask: (inout Admission) -> Admission.Refusal?) -> Bool {
        guard !isUnlimited else { return false }
        let (refusal, taken) = admission.withLock { admission in
            admission.isLaterTurn = isLaterTurn
            defer { admission.isLaterTurn = false }
            return (ask(&admission), admission.takeTaken())
        }
        if !taken.isEmpty { exchange.withLock(\.self)?.publish(taken) }
        guard let refusal else { return false }
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
