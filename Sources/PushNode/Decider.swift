import NodeMetrics
import PushServer
import PushStore
import StatusProtocol
import Waku
import WakuCrypto

/// Applies the rules to what is stored, inside of a transaction, and keeps what they decide.
struct Decider: Sendable {
    let registrations: RegistrationRules
    let requests: RequestRules
    let gate: Gate
    var drain = Drain()

    /// What is to be done once the transaction is durable.
    enum Outcome: Sendable {
        case registration(Answer, Counter, TopicChange?)
        case request(PendingRequest, queued: [QueuedDelivery])
    }

    /// What becomes of a registrant's topics.
    enum TopicChange: Sendable {
        case added(KeyHash)
        case perhapsRemoved(KeyHash)
    }

    func decide(_ claim: RegistrationClaim, _ work: Work, _ transaction: StoreTransaction, at now: Timestamp) throws -> Outcome {
        let head = try claim.key.flatMap(transaction.head)
        // The relay may bring this very message again, after a restart too, and its answer may be what was lost.
        let mark = MessageMark(of: work.hash)
        if let head, head.version == claim.version, head.message == mark {
            return .registration(answer(claim, .keep, work), .registrationRepeated, nil)
        }
        if drain.isOn { return .registration(answer(claim, .refuse(.internalError), work), .registrationRefused, nil) }
        let decision = try registrations.decide(
            claim, storedVersion: head?.version, registered: { try claim.key.flatMap(transaction.state)?.registration })
        let answer = answer(claim, decision, work)
        switch decision {
        case .store(let key, let registration, let bytes):
            let isNew = head?.isRegistered != true
            guard
                try !gate.refusesRegistration(
                    of: key.keyHash, isNew: isNew,
                    installations: { try transaction.countedInstallations(of: key.keyHash) - (head?.isUnfounded == true ? 1 : 0) }, at: now)
            else { return .registration(self.answer(claim, .refuse(.internalError), work), .registrationLimited, nil) }
            try transaction.store(registration, bytes: bytes, as: key, message: mark, replacing: head, at: now)
            return .registration(answer, .registrationStored, isNew ? .added(key.keyHash) : nil)
        case .unregister(let key, let version):
            // What was never here takes a row as a new registration does, and is limited like one.
            if head == nil,
                try gate.refusesRegistration(
                    of: key.keyHash, isNew: true, installations: { try transaction.countedInstallations(of: key.keyHash) }, at: now)
            {
                return .registration(self.answer(claim, .refuse(.internalError), work), .registrationLimited, nil)
            }
            try transaction.unregister(key, version: version, message: mark, at: now)
            return .registration(answer, .registrationEnded, .perhapsRemoved(key.keyHash))
        case .keep: return .registration(answer, .registrationRepeated, nil)
        case .refuse(let reason): return .registration(answer, reason.counter, nil)
        }
    }

    func answer(_ claim: RegistrationClaim, _ decision: RegistrationDecision, _ work: Work) -> Answer {
        var error: PushNotificationRegistrationResponse.ErrorType?
        if case .refuse(let reason) = decision { error = reason }
        return Answer(
            kind: .registrationResponse, payload: PushNotificationRegistrationResponse(error: error, requestID: claim.requestID).encoded(),
            recipient: claim.sender, pubsubTopic: work.pubsubTopic, times: work.times, question: work.hash)
    }

    func decide(
        _ request: PushNotificationRequest, _ envelope: MetadataEnvelope, _ work: Work, expires: Timestamp, _ transaction: StoreTransaction,
        at now: Timestamp
    ) throws -> Outcome {
        if let codes = try transaction.answer(to: envelope.id), codes.count == request.requests.count {
            let results = codes.map { PendingRequest.Entry.Result.known(AnswerCode.error($0)) }
            return .request(pending(request, envelope, work, results), queued: [])
        }
        let outcomes: [EntryOutcome]
        var registrations = RequestedRegistrations(transaction: transaction)
        do {
            outcomes = try requests.decide(
                request, registration: { try registrations.registration(of: $0) },
                delivery: { try transaction.acceptance(of: $0).map { $0 ? .accepted : .waiting } })
        } catch is RequestedRegistrations.TooMany {
            return .request(failure(request, envelope, work), queued: [])
        }
        var queued: [QueuedDelivery] = []
        var results: [PendingRequest.Entry.Result] = []
        for outcome in outcomes {
            switch outcome {
            case .report(let error): results.append(.known(error))
            case .await(let id): results.append(.waiting(id))
            case .deliver(_, _, let stored) where gate.refuses({ $0.notification(for: stored.key, at: now) }):
                results.append(.known(.internalError))
            case .deliver(let id, let notification, let stored):
                let waiting = try transaction.enqueue(id, notification, to: stored, expires: expires)
                queued.append(
                    QueuedDelivery(waiting: waiting, entry: OutboxEntry(waiting, notification, to: stored), times: work.times))
                results.append(.waiting(id))
            }
        }
        let pending = pending(request, envelope, work, results)
        if let codes = pending.finalCodes { try transaction.remember(answer: codes, to: envelope.id, at: now) }
        return .request(pending, queued: queued)
    }

    private func pending(
        _ request: PushNotificationRequest, _ envelope: MetadataEnvelope, _ work: Work, _ results: [PendingRequest.Entry.Result]
    ) -> PendingRequest {
        PendingRequest(
            envelopeID: envelope.id, sender: envelope.sender, pubsubTopic: work.pubsubTopic, messageID: request.messageID,
            entries: zip(request.requests, results).map { entry, result in
                PendingRequest.Entry(publicKey: entry.publicKey, installationID: entry.installationID, result: result)
            }, times: work.times, hash: work.hash)
    }

    func failure(_ request: PushNotificationRequest, _ envelope: MetadataEnvelope, _ work: Work) -> PendingRequest {
        pending(request, envelope, work, request.requests.map { _ in .known(.internalError) })
    }
}

/// What a request put into the outbox.
struct QueuedDelivery: Sendable {
    let waiting: WaitingDelivery
    let entry: OutboxEntry
    /// Of the request.
    let times: MessageTimes?
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

/// The registrations that one request concerns: each is opened once, and no more than a request may cost.
private struct RequestedRegistrations {
    struct TooMany: Error {}

    /// Of their lists, which is what makes registrations large.
    private static let byteLimit = 32 << 20

    let transaction: StoreTransaction
    private var known: [RegistrationKey: StoredRegistration?] = [:]
    private var byteCount = 0

    init(transaction: StoreTransaction) {
        self.transaction = transaction
    }

    mutating func registration(of key: RegistrationKey) throws -> StoredRegistration? {
        if let known = known[key] { return known }
        guard byteCount <= Self.byteLimit else { throw TooMany() }
        var found: StoredRegistration?
        if case .registered(let stored)? = try transaction.state(of: key) { found = stored }
        byteCount += found?.registration.listByteCount ?? 0
        known[key] = .some(found)
        return found
    }
}

/// How a report is remembered: one byte.
enum AnswerCode {
    private static let success: UInt8 = 0xFF

    static func code(_ error: PushNotificationReport.ErrorType?) -> UInt8 {
        error.map { UInt8($0.rawValue) } ?? success
    }

    static func error(_ code: UInt8) -> PushNotificationReport.ErrorType? {
        code == success ? nil : PushNotificationReport.ErrorType(rawValue: UInt32(code)) ?? .unknown
    }

    /// nil when something may turn out better next time: then the answer is no final one.
    static func final(_ errors: [PushNotificationReport.ErrorType?]) -> [UInt8]? {
        errors.contains(.internalError) ? nil : errors.map(code)
    }
}
