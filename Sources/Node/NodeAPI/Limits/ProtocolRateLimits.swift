package import Core
package import NodeMetrics
package import RateLimits
import Storage

/// The rate limits of one protocol, with the counters of refused work. Limits apply per protocol.
package protocol ProtocolRateLimits: Sendable {
    var limiter: RateLimits { get }
    /// The label of refusals in metrics.
    var label: ProtocolLabel { get }
    /// Names the payers in ``LimitReport``.
    var hasher: PayerHasher { get }
    /// By default there are none: `waku_push_refused_total` counts all refusals.
    static var counters: LimitCounters? { get }
}

extension ProtocolRateLimits {
    package static var counters: LimitCounters? { nil }

    /// Counts refusals.
    package func attach(to node: NodeServices) {
        let (counters, label) = (node.counters, label)
        limiter.reportRefusals { refusal, standing in
            if let counter = Self.counters?[refusal] { counters.add(counter) }
            counters.increment(.refused, label, refusal, standing)
        }
        limiter.measured(storeByteCount: node.store.byteCount)
    }

    /// Called once a minute.
    package func endMinute(of node: NodeServices) {
        limiter.measured(storeByteCount: node.store.byteCount)
        limiter.endMinute(at: node.now())
    }

    /// A warning while a limit of rows is reached.
    ///
    /// - Parameter effect: the effect on new devices.
    package func exhaustedFinding(_ effect: String = "new devices are refused") -> Finding? {
        guard let limit = limiter.exhausted() else { return nil }
        let name = limit == .storeMiB ? "store-mib" : "registration-count"
        return Finding(
            "registrations of \(label.rawValue)", .warn, "\(name) is reached: \(effect)",
            remedy: "raise \(name), or see admin limits for the cause")
    }

    /// Replaces the limits. All senders start with full rates.
    package func replace(_ limits: Limits) {
        limiter.replace(limits)
    }

    /// - Parameters:
    ///   - isSegmented: whether the message is a segment: each node applies its limits to segments independently.
    ///   - isRetry: whether this is a retry: see ``Incoming/isRetry``.
    /// - Throws: ``Drop`` if a limit is exceeded.
    package func admit(
        isSegmented: Bool = false, isRetry: Bool = false, _ ask: (inout RateLimitTable) -> RateLimitTable.Refusal?
    ) throws(Drop) {
        if limiter.refuses(isRetry: isRetry, ask) { throw Drop(.droppedLimited, isLeftToOthers: isSegmented) }
    }

    package func refuses(
        once id: ChargeID? = nil, for charge: Charge = .unattributed, _ ask: (inout RateLimitTable) -> RateLimitTable.Refusal?
    ) -> Bool {
        limiter.refuses(once: id, for: charge, ask)
    }

    /// Whether limits refuse to read stored content, by its size in bytes.
    package func refusesReading(_ byteCount: Int, on bill: inout ReadingBill, at now: Timestamp, by payer: () -> Charge) -> Bool {
        let charged = bill.charged(byteCount)
        guard charged > 0, !limiter.isUnlimited else { return false }
        let (charge, purpose) = (payer(), bill.purpose)
        return refuses(for: charge) { $0.reading(byteCount: charged, for: purpose, by: charge, at: now) }
    }
}

/// A protocol whose limits are replaced when the configuration is reloaded.
package protocol ReloadsLimits: Sendable {
    /// Replaces the limits, and the keys that may register.
    func replaceLimits(_ limits: Limits)
}

/// A service with limits of its own, of which each of several nodes applies its share.
package protocol RateLimitedService: ProtocolService {
    associatedtype OwnLimits: ProtocolRateLimits
    var limits: OwnLimits { get }
    var node: NodeServices { get }
}

extension RateLimitedService {
    package var limitReport: LimitReport? { LimitReport(limits.limiter, hasher: limits.hasher, at: node.now()) }

    package func nodeCountChanged(_ nodeCount: Int) { limits.limiter.share(among: nodeCount) }
}
