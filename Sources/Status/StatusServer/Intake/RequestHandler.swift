import Delivery
import NodeMetrics
import RateLimits
import NodeAPI
import Core
import StatusProtocol
import StatusRules
import Storage
import Waku

/// Decides on requests and the notifications that they put into the outbox, as a pure function of stored rows.
struct RequestHandler: Sendable {
    let rules: RequestRules
    let registrations: Registrations
    let limits: StatusLimits
    /// Whether other nodes post from the outbox too.
    var isShared = false

    /// Number of registrations read at once.
    private static let chunkCount = 16
    /// Limit of the total size in bytes of the registrations that a request reads: long lists make them large.
    private static let byteLimit = 32 << 20

    /// A device of a request, with its registration.
    private struct Registered: Sendable {
        let device: DeviceID
        let registration: StoredRegistration
        let isNeverAsked: Bool
    }

    struct Outcome: Sendable {
        let pending: PendingRequest
        /// The notifications of the last part.
        let queued: [QueuedDelivery]
        /// The index of the first entry of the last part.
        var start = 0
    }

    static func isLarge(_ request: PushNotificationRequest) -> Bool { request.requests.count > LargeRequests.smallCount }

    /// Decides the next entries of a request, up to ``NodeAPI/LargeRequests/partCount``.
    func change(
        _ whole: PushNotificationRequest, _ pending: PendingRequest, expires: Timestamp, at now: Timestamp
    ) -> StoreCommand<Outcome> {
        let start = pending.decidedCount
        let end = min(start + LargeRequests.partCount, whole.requests.count)
        let request = PushNotificationRequest(requests: Array(whole.requests[start..<end]), messageID: whole.messageID)
        return change(request, of: whole.requests.count, pending, expires: expires, at: now).map {
            Outcome(pending: $0.pending, queued: $0.queued, start: start)
        }
    }

    private func change(
        _ request: PushNotificationRequest, of count: Int, _ pending: PendingRequest, expires: Timestamp, at now: Timestamp
    ) -> StoreCommand<Outcome> {
        let failed = [PendingRequest.Entry.Result](repeating: .known(.internalError), count: request.requests.count)
        let keys = Set(request.requests.compactMap(rules.key))
        let registered = read(Array(keys)[...], found: [:], byteCount: 0)
        let decision = registered.then { registered -> StoreCommand<Outcome> in
            guard let registered else { return .done(Outcome(pending: pending.with(failed), queued: [])) }
            return decide(request, pending: pending, registered: registered, expires: expires, at: now)
        }
        // Few requests are repeated, so the registrations are read in the same step.
        return AnswerStorage.answer(to: pending.envelopeID).then(besides: decision) { codes, decision in
            if codes == AnswerStorage.handledElsewhere {
                return registered.map { answerHandled(request, pending: pending, registered: $0 ?? [:]) }
            }
            guard let codes, codes.count == count else { return try decision() }
            return .done(Outcome(pending: pending.with(all: codes.map { .known(AnswerCode.error($0)) }), queued: []))
        }
    }

    /// Reads the registrations; nil if they exceed the byte limit.
    private func read(
        _ keys: ArraySlice<RegistrationKey>, found: [RegistrationKey: Registered], byteCount: Int
    ) -> StoreCommand<[RegistrationKey: Registered]?> {
        guard !keys.isEmpty else { return .done(found) }
        guard byteCount <= Self.byteLimit else { return .done(nil) }
        let chunk = keys.prefix(Self.chunkCount)
        return .read(chunk.map(Registrations.contentRead)) { rows in
            var (found, byteCount) = (found, byteCount)
            for (key, rows) in zip(chunk, rows) {
                guard case (let device, .registered(let stored), let isNeverAsked)? = try registrations.content(rows, of: key) else {
                    continue
                }
                found[key] = Registered(
                    device: Registrations.device(device), registration: stored, isNeverAsked: isNeverAsked)
                byteCount += stored.registration.listByteCount
            }
            return read(keys.dropFirst(Self.chunkCount), found: found, byteCount: byteCount)
        }
    }

    /// The answer to a request that another server has handled.
    private func answerHandled(
        _ request: PushNotificationRequest, pending: PendingRequest, registered: [RegistrationKey: Registered]
    ) -> Outcome {
        let outcomes = rules.decide(request, registration: { registered[$0]?.registration }, delivery: { _ in .accepted })
        let results = outcomes.map { outcome -> PendingRequest.Entry.Result in
            if case .report(let error) = outcome { .known(error) } else { .known(nil) }
        }
        return Outcome(pending: pending.with(results), queued: [])
    }

    private func decide(
        _ request: PushNotificationRequest, pending: PendingRequest, registered: [RegistrationKey: Registered], expires: Timestamp,
        at now: Timestamp
    ) -> StoreCommand<Outcome> {
        // Determines the deliveries first, then reads their states.
        var deliveries: [DeliveryID] = []
        let outcomes = rules.decide(request, registration: { registered[$0]?.registration }) { delivery in
            deliveries.append(delivery)
            return nil
        }
        guard !deliveries.isEmpty else { return carryOut(outcomes, pending: pending, registered: registered, expires: expires, at: now) }
        return DeliveryStorage.states(of: deliveries).then { [deliveries] states in
            let known = Dictionary(zip(deliveries, states).compactMap { id, state in state.map { (id, $0) } }) { first, _ in first }
            let outcomes =
                known.isEmpty
                ? outcomes : rules.decide(request, registration: { registered[$0]?.registration }, delivery: { known[$0] })
            return carryOut(outcomes, pending: pending, registered: registered, expires: expires, at: now)
        }
    }

    private func carryOut(
        _ outcomes: [EntryOutcome], pending: PendingRequest, registered: [RegistrationKey: Registered], expires: Timestamp,
        at now: Timestamp
    ) -> StoreCommand<Outcome> {
        var deliveries: [(id: DeliveryID, device: DeviceID, address: DeviceAddress, content: StatusContent)] = []
        var changes: [Change] = []
        var results: [PendingRequest.Entry.Result] = []
        var tokens: [DeliveryID: Payer] = [:]
        for outcome in outcomes {
            switch outcome {
            case .report(let error): results.append(.known(error))
            case .await(let id): results.append(.waiting(id))
            case .deliver(let id, let notification, let stored):
                let token = limits.charge(of: stored.registration, at: now)
                let owner = Charge(limits.standings.hasher.payer(.owner, stored.key.keyHash.bytes), token.standing)
                guard let device = registered[stored.key]?.device, let address = DeviceAddress(stored.registration),
                    !limits.refuses(for: owner, { $0.notification(for: stored.key, by: owner, at: now) })
                else {
                    results.append(.known(.internalError))
                    continue
                }
                changes.append(
                    DeliveryStorage.enqueue(
                        id, for: device, payload: StatusPayload.encode(notification), expires: expires,
                        markedAt: isShared ? nil : now, by: registrations.sealer))
                if registered[stored.key]?.isNeverAsked == true { changes.append(Registrations.asked(device.row)) }
                // Anyone can run a push service that accepts: a Web Push subscription earns no standing.
                if address.gorushDevice != nil { tokens[id] = token.payer }
                deliveries.append((id, device, address, StatusContent(notification, for: stored.key)))
                results.append(.waiting(id))
            }
        }
        let pending = pending.with(results, tokens: tokens)
        if let codes = pending.finalCodes { changes.append(AnswerStorage.remember(codes, to: pending.envelopeID, at: now)) }
        return .apply(changes) { [deliveries] inserted in
            let queued = zip(deliveries, inserted).map { delivery, row in
                let waiting = WaitingDelivery(
                    id: row, delivery: delivery.id, device: delivery.device, expires: expires, markedAt: isShared ? nil : now)
                return QueuedDelivery(waiting, to: delivery.address, delivery.content, times: pending.times)
            }
            return Outcome(pending: pending, queued: queued)
        }
    }
}
