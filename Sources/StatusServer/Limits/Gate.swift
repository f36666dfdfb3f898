import NodeMetrics
package import PushNode
import StatusProtocol
package import StatusRules
import Waku

/// The limits of the deployed protocol.
package typealias Gate = LimitGate<Admission, Limits, Admission.Refusal>

extension LimitGate where Limiter == Admission, Limits == StatusRules.Limits, Refusal == Admission.Refusal {
    package convenience init(_ limits: StatusRules.Limits) {
        self.init(limits, none: .none, make: { Admission($0) }, counter: \.counter)
    }

    /// Whether the number of installations of a key is limited.
    var limitsInstallations: Bool { limits.installationsByKey != nil }

    var countsRegistrations: Bool { limits.registrationCount != nil }

    /// - Parameters:
    ///   - key: the registrant.
    ///   - isNew: whether the installation is not registered now.
    ///   - installations: number of registered installations of this key; 0 if it is not limited.
    ///   - now: when it came in.
    func refusesRegistration(of key: KeyHash, isNew: Bool, installations: Int, at now: Timestamp) -> Bool {
        guard limits.allows(key) else { return refuses { _ in .denied } }
        guard isNew else { return false }
        return refusesNew { $0.newRegistration(installations: installations, count: $1, at: now) }
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
