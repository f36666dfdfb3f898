import NodeMetrics
import PushNode
import StatusProtocol
package import StatusRules
import Waku

/// The limits of version 0.1: they count for each protocol by itself.
package struct V01Gate: Sendable {
    private let gate: LimitGate<Admission, Limits, Admission.Refusal>

    package init(_ limits: Limits) {
        gate = LimitGate(limits, none: .none, make: { Admission($0) }, counter: { Counter($0) })
    }

    /// Sets the counters for refusals.
    func count(with counters: Counters) {
        gate.count(with: counters)
    }

    /// Replaces the limits. All senders start with full rates.
    package func replace(_ limits: Limits) {
        gate.replace(limits)
    }

    /// - Throws: `Drop` if a limit is exceeded.
    func admit(_ ask: (inout Admission) -> Admission.Refusal?) throws(Drop) {
        try gate.admit(ask)
    }

    func refuses(_ ask: (inout Admission) -> Admission.Refusal?) -> Bool {
        gate.refuses(ask)
    }

    /// Whether limits refuse a record.
    ///
    /// - Parameters:
    ///   - claim: Whose record it is.
    ///   - devices: Of the record.
    ///   - isNew: The account is not registered at present.
    ///   - now: When it came.
    func refusesRecord(_ claim: V01.RegisterClaim, devices: Int, isNew: Bool, at now: Timestamp) -> Bool {
        guard !gate.admitsAll else { return false }
        let limits = gate.limits
        guard limits.allows(KeyHash(of: claim.sender)) else { return refuses { _ in .denied } }
        if let limit = limits.installationsByKey, devices > limit { return refuses { _ in .installationsByKey } }
        guard isNew else { return false }
        return gate.refusesNew(devices: devices) { $0.newRegistration(installations: 0, count: $1 + devices - 1, at: now) }
    }

    var countsDevices: Bool { gate.limits.registrationCount != nil }

    func counted(devices count: Int) {
        gate.counted(devices: count)
    }
}
