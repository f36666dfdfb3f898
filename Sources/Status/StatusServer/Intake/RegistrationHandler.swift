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
        /// A registration ended, perhaps the registrant's last.
        case perhapsRemoved(KeyHash)
    }

    /// nil is success.
    let error: PushNotificationRegistrationResponse.ErrorType?
    let counter: Counter
    var topicChange: TopicChange?
    /// The registrant whose registration made room for this one.
    var displaced: KeyHash?

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
    var asked = AskedRows()

    func change(_ claim: RegistrationClaim, _ hash: MessageHash, at now: Timestamp) -> StoreCommand<RegistrationOutcome> {
        guard let key = claim.key else { return .done(refused(claim, storedVersion: nil)) }
        let read = claim.leavesGrant ? Registrations.headAndContentRead(key) : Registrations.headRead(key)
        return .find(read) { rows in
            try decide(claim, key: key, mark: MessageMark(of: hash), head: try Registrations.head(rows), at: now) {
                registrations.received(rows, of: key)
            }
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
        _ claim: RegistrationClaim, key: RegistrationKey, mark: MessageMark, head: RegistrationHead?, at now: Timestamp,
        proved: () -> PushNotificationRegistration?
    ) throws -> StoreCommand<RegistrationOutcome> {
        // The relay may deliver the same message again, even after a restart, and its answer may have been lost.
        if let head, head.version == claim.version, head.message == mark {
            return .done(RegistrationOutcome(nil, counter: .registrationRepeated))
        }
        if drain.isOn { return .done(RegistrationOutcome(.internalError, counter: .registrationRefused)) }
        var mayBeRepeated = false
        let decision = rules.decide(claim, storedVersion: head?.version, proved: proved) {
            mayBeRepeated = true
            return nil
        }
        // Only a registration of this version can be the same, and an older message must not make the node read more than itself.
        guard mayBeRepeated, let stored = head, stored.version == claim.version,
            stored.storedByteCount <= claim.byteCount + Sealer.overhead
        else {
            return try carryOut(decision, mark: mark, head: head, at: now)
        }
        return .find(Registrations.contentRead(key)) { rows in
            let registered = try registrations.content(rows, of: key)?.state.registration
            return try carryOut(
                rules.decide(claim, storedVersion: stored.version, registered: { registered }), mark: mark, head: head, at: now)
        }
    }

    private func carryOut(
        _ decision: RegistrationDecision, mark: MessageMark, head: RegistrationHead?, at now: Timestamp
    ) throws -> StoreCommand<RegistrationOutcome> {
        func id(_ key: RegistrationKey) -> ChargeID {
            ChargeID(key.keyHash.bytes + withUnsafeBytes(of: mark.rawValue, Array.init), at: now)
        }
        switch decision {
        case .store(let key, let registration, let bytes):
            let isNew = head?.isRegistered != true
            let charge = isNew ? limits.charge(of: registration, at: now) : .unattributed
            // Of a device that moves to another push service too.
            let origin = registration.subscription.map(registrations.originMark).flatMap { head?.isDevice(ofOrigin: $0) == true ? nil : $0 }
            return ifAllowed(id(key), key.keyHash, isNew: isNew, mayDisplace: true, addedTo: origin, head, by: charge, at: now) {
                .change(
                    registrations.store(registration, bytes: bytes, as: key, message: mark, replacing: head, at: now),
                    RegistrationOutcome(nil, counter: .registrationStored, topicChange: isNew ? .added(key.keyHash) : nil))
            }
        case .unregister(let key, let version):
            let end = {
                @Sendable in
                let topicChange = head?.isRegistered == true ? RegistrationOutcome.TopicChange.perhapsRemoved(key.keyHash) : nil
                return Registrations.unregister(key, version: version, message: mark, replacing: head, at: now).map {
                    RegistrationOutcome(nil, counter: .registrationEnded, topicChange: topicChange)
                }
            }
            // An installation that was never registered needs a new row, like a registration, so the same limits apply.
            return head == nil
                ? ifAllowed(id(key), key.keyHash, isNew: true, mayDisplace: false, addedTo: nil, head, by: .unattributed, at: now, end)
                : end()
        case .keep: return .done(RegistrationOutcome(nil, counter: .registrationRepeated))
        case .refuse(let error): return .done(RegistrationOutcome(error, counter: error.counter))
        }
    }

    /// Calls the closure if limits allow the registration; refuses it otherwise.
    ///
    /// - Parameters:
    ///   - mayDisplace: whether a registration that no one has asked for makes room if there is none.
    ///   - origin: the push service (``Registrations/originMark(of:)``) that has one device more then; nil if none has.
    private func ifAllowed(
        _ id: ChargeID, _ keyHash: KeyHash, isNew: Bool, mayDisplace: Bool, addedTo origin: Int64?, _ head: RegistrationHead?,
        by charge: Charge, at now: Timestamp,
        _ then: @escaping @Sendable () -> StoreCommand<RegistrationOutcome>
    ) -> StoreCommand<RegistrationOutcome> {
        let displaces = isNew && mayDisplace && limits.limiter.isFull(for: id)
        let check = { @Sendable (installations: Int) -> StoreCommand<RegistrationOutcome> in
            guard displaces else {
                if limits.refusesRegistration(id, of: keyHash, isNew: isNew, installations: installations, by: charge, at: now) {
                    return Self.refusal
                }
                return ifRoom(id, at: origin, by: charge, then)
            }
            return displacing(id, keyHash, installations: installations, addedTo: origin, by: charge, at: now, then)
        }
        guard isNew, let limit = limits.limiter.limits.installationsByKey else { return check(0) }
        // Counts registered installations and unfounded tombstones. At most ten times the limit of rows (at least 1,000) are read: a key with more
        // rows, ended ones included, counts as full.
        return Registrations.countedInstallations(of: keyHash, limit: max(1_000, 10 * min(limit, 1_000_000))).then { count in
            check(count - (head?.neverRegistered == true ? 1 : 0))
        }
    }

    private static var refusal: StoreCommand<RegistrationOutcome> {
        .done(RegistrationOutcome(.internalError, counter: .registrationLimited))
    }

    /// Calls the closure if a push service may have one device more; refuses the registration otherwise. Devices are counted after rates were applied,
    /// because it takes longer the more there are.
    private func ifRoom(
        _ id: ChargeID, at origin: Int64?, by charge: Charge, _ then: @escaping @Sendable () -> StoreCommand<RegistrationOutcome>
    ) -> StoreCommand<RegistrationOutcome> {
        guard let origin, let limit = limits.limiter.limits.webPushDevicesByOrigin else { return then() }
        return Registrations.deviceCount(ofOrigin: origin).then { count in
            guard count >= limit else { return then() }
            limits.limiter.uncount(id)
            _ = limits.refuses(for: charge) { _ in .webPushDevicesByOrigin }
            return Self.refusal
        }
    }

    /// Calls the closure, and removes a registration that no one has asked for, if limits allow it.
    private func displacing(
        _ id: ChargeID, _ keyHash: KeyHash, installations: Int, addedTo origin: Int64?, by charge: Charge, at now: Timestamp,
        _ then: @escaping @Sendable () -> StoreCommand<RegistrationOutcome>
    ) -> StoreCommand<RegistrationOutcome> {
        Registrations.displaceable(
            isAsked: { [asked] in asked.contains($0) },
            isSpared: { [limits] in limits.charge(of: QueryTopics(of: $0).deployed, at: now).standing == .known }
        ).then { found in
            let isRefused = limits.refusesRegistration(
                id, of: keyHash, isNew: true, installations: installations, displaced: found == nil ? 0 : 1, by: charge, at: now)
            if isRefused { return Self.refusal }
            return ifRoom(id, at: origin, by: charge) {
                guard let found else { return then() }
                return Registrations.displace(found, at: now).then {
                    then().map { outcome in
                        var outcome = outcome
                        outcome.displaced = found.key.keyHash
                        return outcome
                    }
                }
            }
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
