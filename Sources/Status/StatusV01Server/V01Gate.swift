import NodeMetrics
import NodeAPI
import StatusProtocol
package import RateLimits
import StatusRules
import Core

/// The limits of version 0.1.
package final class V01Gate: Sendable {
    let limiter: LimitGate

    package init(_ limits: Limits) {
        limiter = LimitGate(limits)
    }

    /// Where refusals are counted.
    func count(with counters: Counters) {
        limiter.reportRefusals { counters.add(Counter($0)) }
    }

    /// Other limits from now on. Senders that were over the old ones begin anew.
    package func replace(_ limits: Limits) {
        limiter.replace(limits)
    }

    /// See `ProtocolService.shared(by:)`.
    func share(among nodeCount: Int) {
        limiter.share(among: nodeCount)
    }

    /// - Parameters:
    ///   - isSegmented: every node decides on its own about what comes in segments.
    ///   - isLaterTurn: see ``PushNode/Incoming/isLaterTurn``.
    ///   - ask: what is to be admitted.
    /// - Throws: `Drop` when a limit is exceeded.
    func admit(
        isSegmented: Bool = false, isLaterTurn: Bool = false, _ ask: (inout Admission) -> Admission.Refusal?
    ) throws(Drop) {
        if limiter.refuses(isLaterTurn: isLaterTurn, ask) { throw Drop(.droppedLimited, isLeftToOthers: isSegmented) }
    }

    func refuses(_ ask: (inout Admission) -> Admission.Refusal?) -> Bool { limiter.refuses(ask) }

    /// Whether limits refuse a record.
    ///
    /// - Parameters:
    ///   - claim: Whose record it is.
    ///   - devices: Of the record.
    ///   - isNew: The account is not registered at present.
    ///   - now: When it came.
    func refusesRecord(_ claim: V01.RegisterClaim, devices: Int, isNew: Bool, at now: Timestamp) -> Bool {
        guard !limiter.isUnlimited else { return false }
        let limits = limiter.limits
        guard limits.allows(KeyHash(of: claim.sender)) else { return refuses { _ in .denied } }
        if let limit = limits.installationsByKey, devices > limit { return refuses { _ in .installationsByKey } }
        return isNew && limiter.refusesNew(devices: devices, at: now)
    }

    var countsDevices: Bool { limiter.countsRegistrations }

    func counted(devices count: Int) {
        limiter.counted(registrations: count)
    }
}
