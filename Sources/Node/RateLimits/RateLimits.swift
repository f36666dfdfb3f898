import Synchronization
package import Core

/// A thread-safe ``RateLimitTable`` that reports refusals. Each protocol has its own: limits apply per protocol.
package final class RateLimits: Sendable {
    private let admission: Mutex<RateLimitTable>
    /// The limits of all nodes together, and the number of nodes.
    private let whole: Mutex<(limits: Limits, nodeCount: Int)>
    /// Whether there are no limits: then no lock is taken.
    private let isOpen: Atomic<Bool>
    private let report = Mutex<(@Sendable (RateLimitTable.Refusal, Standing) -> Void)?>(nil)
    private let log = Mutex(RefusalLog())
    /// Number of registered devices, if limited: counted periodically, and incremented with each new device.
    private let registrationCount = Atomic(0)
    /// The size of the store, measured periodically.
    private let storeByteCount = Atomic(0)

    package init(_ limits: Limits) {
        admission = Mutex(RateLimitTable(limits))
        whole = Mutex((limits, 1))
        isOpen = Atomic(limits == .none)
    }

    /// - Parameter body: called with each refusal and the payer's standing, on the calling thread.
    package func reportRefusals(to body: @escaping @Sendable (RateLimitTable.Refusal, Standing) -> Void) {
        report.withLock { $0 = body }
    }

    /// Replaces the limits. All senders start with full rates.
    package func replace(_ limits: Limits) {
        whole.withLock { whole in
            whole.limits = limits
            apply(whole)
        }
    }

    /// Sets the number of nodes that share the messages; this node applies its share of the limits. When the number changes, all senders start
    /// with full rates.
    package func share(among nodeCount: Int) {
        whole.withLock { whole in
            whole.nodeCount = nodeCount
            apply(whole)
        }
    }

    private func apply(_ whole: (limits: Limits, nodeCount: Int)) {
        let limits = whole.limits.share(among: whole.nodeCount)
        admission.withLock { admission in
            guard admission.limits != limits else { return }
            var table = RateLimitTable(limits)
            table.charged = admission.charged
            admission = table
        }
        isOpen.store(limits == .none, ordering: .releasing)
    }

    package var limits: Limits { admission.withLock(\.limits) }
    package var isUnlimited: Bool { isOpen.load(ordering: .acquiring) }

    /// Whether a limit refuses a message. Reports the refusal.
    ///
    /// - Parameters:
    ///   - isRetry: whether the message is a retry: see ``RateLimitTable/isRepetition(of:)``.
    ///   - id: of a command of the store: once it was admitted, limits do not refuse it, and nothing is counted.
    package func refuses(
        isRetry: Bool = false, once id: ChargeID? = nil, for charge: Charge = .unattributed,
        _ ask: (inout RateLimitTable) -> RateLimitTable.Refusal?
    ) -> Bool {
        guard !isUnlimited else { return false }
        let answer = admission.withLock { admission -> RateLimitTable.Refusal?? in
            if let id, admission.charged.contains(id) { return nil }
            admission.isRetry = isRetry
            defer { admission.isRetry = false }
            let refusal = ask(&admission)
            if let id, refusal == nil { admission.charged.set(0, of: id) }
            return .some(refusal)
        }
        guard let refusal = answer else { return false }
        log.withLock { log in
            log.worked(for: charge)
            if let refusal { log.refused(refusal, charge.standing) }
        }
        guard let refusal else { return false }
        report.withLock(\.self)?(refusal, charge.standing)
        return true
    }

    /// Reports work that was displaced from a bounded queue.
    package func displaced(_ limit: RateLimitTable.Refusal, _ standing: Standing, count: Int = 1) {
        guard count > 0 else { return }
        log.withLock { $0.refused(limit, standing, count: count) }
        for _ in 0..<count { report.withLock(\.self)?(limit, standing) }
    }

    /// Counts a piece of work that no limit was asked about, for the list of the greatest payers.
    package func worked(for charge: Charge) {
        log.withLock { $0.worked(for: charge) }
    }

    /// Refusals and the greatest payers.
    package var refusals: RefusalLog { log.withLock(\.self) }

    /// Called once a minute.
    package func endMinute(at now: Timestamp) {
        log.withLock { $0.endMinute(at: now) }
    }

    // MARK: New registrations

    package var countsRegistrations: Bool { limits.registrationCount != nil }

    package func counted(registrations count: Int) {
        registrationCount.store(count, ordering: .relaxed)
    }

    package func measured(storeByteCount count: Int) {
        storeByteCount.store(count, ordering: .relaxed)
    }

    /// The limit that leaves no room for `devices` more; nil if there is room.
    package func exhausted(devices: Int = 1) -> RateLimitTable.Refusal? {
        guard !isUnlimited else { return nil }
        let limits = limits
        if let limit = limits.registrationCount, registrationCount.load(ordering: .relaxed) + devices > limit { return .registrationCount }
        if let limit = limits.storeMiB, storeByteCount.load(ordering: .relaxed) >> 20 >= limit { return .storeMiB }
        return nil
    }

    /// Whether a new device finds room only if another one is removed.
    package var isFull: Bool { exhausted() != nil }

    /// Counts the end of registrations.
    package func removedRegistration(count: Int = 1) {
        registrationCount.subtract(count, ordering: .relaxed)
    }

    /// Whether a new device finds room only if another one is removed, without the count of a former decision on the same command.
    package func isFull(for id: ChargeID) -> Bool {
        uncount(id)
        return isFull
    }

    /// Takes back the count of new devices: their command is decided again, or refused for another reason. The rate stays charged.
    ///
    /// - Returns: whether the rate was charged.
    @discardableResult
    package func uncount(_ id: ChargeID) -> Bool {
        guard !isUnlimited else { return false }
        let count = admission.withLock { admission -> Int? in
            guard let count = admission.charged.value(of: id) else { return nil }
            if count != 0 { admission.charged.set(0, of: id) }
            return count
        }
        registrationCount.subtract(count ?? 0, ordering: .relaxed)
        return count != nil
    }

    /// Whether limits refuse devices that are not registered now. If not, they are counted. The rate is charged once for each id.
    ///
    /// - Parameters:
    ///   - installations: number of registered installations of the key; 0 if it is not limited.
    ///   - displaced: number of devices that are removed to make room.
    package func refusesNew(
        _ id: ChargeID, devices: Int = 1, installations: Int = 0, displaced: Int = 0, by charge: Charge = .unattributed, at now: Timestamp
    ) -> Bool {
        let isCharged = uncount(id)
        let exhausted = displaced < devices ? exhausted(devices: devices - displaced) : nil
        let isRefused = refuses(for: charge) {
            let refusal = $0.newRegistration(
                installations: installations, devices: devices, exhausted: exhausted, isCharged: isCharged, by: charge, at: now)
            if refusal == nil { $0.charged.set(devices - displaced, of: id) }
            return refusal
        }
        if !isRefused { registrationCount.add(devices - displaced, ordering: .relaxed) }
        return isRefused
    }
}
