import NodeMetrics
import NodeAPI
import StatusProtocol
package import RateLimits
import StatusRules
import Core
import WakuCrypto

/// The rate limits of version 0.1.
package final class V01Limits: Sendable {
    let limiter: RateLimits
    /// The standing of device tokens, and of registrants.
    let standings: Standings<V01.KeyHash>

    /// - Parameters:
    ///   - limits: the limits of all nodes together.
    ///   - payers: equal at all nodes of an identity.
    package init(_ limits: Limits, payers: PayerHasher = PayerHasher(key: .random())) {
        limiter = RateLimits(limits)
        standings = Standings(hasher: payers)
    }

    /// Sets the counters for refusals.
    func count(with counters: Counters) {
        limiter.reportRefusals { refusal, standing in
            if let counter = Counter(refusal) { counters.add(counter) }
            counters.increment(.refused, ProtocolLabel.statusV01, refusal.label, StandingLabel(standing))
        }
    }

    /// Replaces the limits. All senders start with full rates.
    package func replace(_ limits: Limits) {
        limiter.replace(limits)
    }

    /// See `ProtocolService.nodeCountChanged(_:)`.
    func share(among nodeCount: Int) {
        limiter.share(among: nodeCount)
    }

    /// - Parameters:
    ///   - isSegmented: whether the message is a segment: each node applies its limits to segments independently.
    ///   - isRetry: whether this is a retry: see ``NodeAPI/Incoming/isRetry``.
    ///   - ask: applies the limits.
    /// - Throws: `Drop` when a limit is exceeded.
    func admit(
        isSegmented: Bool = false, isRetry: Bool = false, _ ask: (inout RateLimitTable) -> RateLimitTable.Refusal?
    ) throws(Drop) {
        if limiter.refuses(isRetry: isRetry, ask) { throw Drop(.droppedLimited, isLeftToOthers: isSegmented) }
    }

    func refuses(for charge: Charge = .unattributed, _ ask: (inout RateLimitTable) -> RateLimitTable.Refusal?) -> Bool {
        limiter.refuses(for: charge, ask)
    }

    /// The payer of work about a registrant.
    func charge(of registrant: V01.KeyHash, at now: Timestamp) -> Charge {
        standings.charge(registrant, registrant.bytes, at: now)
    }

    /// Whether limits refuse a record. If not, its new devices are counted.
    ///
    /// - Parameters:
    ///   - devices: Number of devices in the record.
    ///   - isNew: Whether the account is not registered now.
    ///   - now: The time of receipt.
    func refusesRecord(_ claim: V01.RegisterClaim, devices: Int, isNew: Bool, at now: Timestamp) -> Bool {
        guard !limiter.isUnlimited else { return false }
        let limits = limiter.limits
        guard limits.allows(KeyHash(of: claim.sender)) else { return refuses { _ in .denied } }
        if let limit = limits.installationsByKey, devices > limit { return refuses { _ in .installationsByKey } }
        return isNew && limiter.refusesNew(devices: devices, by: charge(of: claim.keyHash, at: now), at: now)
    }

    var countsDevices: Bool { limiter.countsRegistrations }

    func counted(devices count: Int) {
        limiter.counted(registrations: count)
    }
}
