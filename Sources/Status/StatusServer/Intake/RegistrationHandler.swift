import NodeAPI
import NodeMetrics
import RateLimits
import StatusProtocol
import StatusRules
import Storage
import Core
import Waku

/// The result of a registration.
struct RegistrationOutcome: Sendable {
    /// The change of a registrant's topics.
    enum TopicChange: Sendable {
        case added(KeyHash)
        case perhapsRemoved(KeyHash)
    }

    /// nil is success.
    let error: PushNotificationRegistrationResponse.ErrorType?
    let counter: Counter
    var topicChange: TopicChange?

    init(_ error: PushNotificationRegistrationResponse.ErrorType?, counter: Counter, topicChange: TopicChange? = nil) {
        self.error = error
        self.counter = counter
        self.topicChange = topicChange
    }
}

/// Decides on registrations and the changes they make, as a pure function of stored rows.
struct RegistrationHandler: Sendable {
    let rules: RegistrationRules
    let registrations: Registrations
    let limits: StatusLimits
    let drain: Drain

    func change(_ claim: RegistrationClaim, _ hash: MessageHash, at now: Timestamp) -> StoreCommand<RegistrationOutcome> {
        guard let key = claim.key else { return .done(refused(claim, storedVersion: nil)) }
        return .find(Registrations.headRead(key)) { rows in
            try decide(claim, key: key, mark: MessageMark(of: hash), head: try Registrations.head(rows), at: now)
        }
    }

    /// The result for a claim without an installation.
    private func refused(_ claim: RegistrationClaim, storedVersion: UInt64?) -> RegistrationOutcome {
        if drain.isOn { return RegistrationOutcome(.internalError, counter: .registrationRefused) }
        guard case .refuse(let error) = rules.decide(claim, storedVersion: storedVersion, registered: { nil }) else {
            return RegistrationOutcome(.malformedMessage, counter: .registrationMalformed)
        }
        return RegistrationOutcome(error, counter: error.counter)
    }

    private func decide(
        _ claim: RegistrationClaim, key: RegistrationKey, mark: MessageMark, head: RegistrationHead?, at now: Timestamp
    ) throws -> StoreCommand<RegistrationOutcome> {
        // The relay may deliver the same message again, even after a restart, and its answer may have been lost.
        if let head, head.version == claim.version, head.message == mark {
            return .done(RegistrationOutcome(nil, counter: .registrationRepeated))
        }
        if drain.isOn { return .done(RegistrationOutcome(.internalError, counter: .registrationRefused)) }
        var mayBeRepeated = false
        let decision = rules.decide(claim, storedVersion: head?.version) {
            mayBeRepeated = true
            return nil
        }
        guard mayBeRepeated else { return try carryOut(decision, mark: mark, head: head, at: now) }
        return .find(Registrations.contentRead(key)) { rows in
            let registered = try registrations.content(rows, of: key)?.state.registration
            return try carryOut(
                rules.decide(claim, storedVersion: head?.version, registered: { registered }), mark: mark, head: head, at: now)
        }
    }

    private func carryOut(
        _ decision: RegistrationDecision, mark: MessageMark, head: RegistrationHead?, at now: Timestamp
    ) throws -> StoreCommand<RegistrationOutcome> {
        switch decision {
        case .store(let key, let registration, let bytes):
            let isNew = head?.isRegistered != true
            let charge = isNew ? limits.charge(of: registration, at: now) : .unattributed
            return ifAllowed(key.keyHash, isNew: isNew, head, by: charge, at: now) {
                .change(
                    [registrations.store(registration, bytes: bytes, as: key, message: mark, replacing: head, at: now)],
                    RegistrationOutcome(nil, counter: .registrationStored, topicChange: isNew ? .added(key.keyHash) : nil))
            }
        case .unregister(let key, let version):
            let end = {
                @Sendable in
                Registrations.unregister(key, version: version, message: mark, replacing: head, at: now).map {
                    RegistrationOutcome(nil, counter: .registrationEnded, topicChange: .perhapsRemoved(key.keyHash))
                }
            }
            // An installation that was never registered needs a new row, like a registration, so the same limits apply.
            return head == nil ? ifAllowed(key.keyHash, isNew: true, head, by: .unattributed, at: now, end) : end()
        case .keep: return .done(RegistrationOutcome(nil, counter: .registrationRepeated))
        case .refuse(let error): return .done(RegistrationOutcome(error, counter: error.counter))
        }
    }

    /// Calls the closure if limits allow the registration; refuses it otherwise.
    private func ifAllowed(
        _ keyHash: KeyHash, isNew: Bool, _ head: RegistrationHead?, by charge: Charge, at now: Timestamp,
        _ then: @escaping @Sendable () -> StoreCommand<RegistrationOutcome>
    ) -> StoreCommand<RegistrationOutcome> {
        let refusal = StoreCommand.done(RegistrationOutcome(.internalError, counter: .registrationLimited))
        guard isNew, limits.limitsInstallations else {
            return limits.refusesRegistration(of: keyHash, isNew: isNew, installations: 0, by: charge, at: now) ? refusal : then()
        }
        return Registrations.countedInstallations(of: keyHash).then { count in
            let others = count - (head?.neverRegistered == true ? 1 : 0)
            return limits.refusesRegistration(of: keyHash, isNew: isNew, installations: others, by: charge, at: now) ? refusal : then()
        }
    }
}

extension PushNotificationRegistrationResponse.ErrorType {
    fileprivate var counter: Counter {
        switch self {
        case .malformedMessage: .registrationMalformed
        case .versionMismatch: .registrationOutdated
        case .unsupportedTokenType: .registrationUnsupported
        case .unknown, .internalError: .registrationRefused
        }
    }
}
