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

    /// Limit of the content read at once, in bytes.
    private static let chunkByteCount = 2 << 20
    /// Limit of the total size in bytes of the registrations that a request reads: long lists make them large.
    private static let byteLimit = 32 << 20

    /// A device of a request, with its registration.
    private struct Registered: Sendable {
        let device: DeviceID
        let registration: StoredRegistration
        let isNeverAsked: Bool
    }

    private struct Found: Sendable {
        var registered: [RegistrationKey: Registered] = [:]
        /// Limits refuse to read the registrations of these.
        var refused: Set<RegistrationKey> = []
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
        let read = read(Array(keys), at: now)
        let decision = read.then { found -> StoreCommand<Outcome> in
            guard let found else { return .done(Outcome(pending: pending.with(failed), queued: [])) }
            return decide(request, pending: pending, found: found, expires: expires, at: now)
        }
        // Few requests are repeated, so the registrations are read in the same step.
        return AnswerStorage.answer(to: pending.envelopeID).then(besides: decision) { codes, decision in
            if codes == AnswerStorage.handledElsewhere {
                return read.map { answerHandled(request, pending: pending, found: $0 ?? Found(refused: keys)) }
            }
            guard let codes, codes.count == count else { return try decision() }
            return .done(Outcome(pending: pending.with(all: codes.map { .known(AnswerCode.error($0)) }), queued: []))
        }
    }

    /// Reads the registrations, large ones once limits admit them; nil if they exceed the byte limit.
    private func read(_ keys: [RegistrationKey], at now: Timestamp) -> StoreCommand<Found?> {
        .read(keys.map(Registrations.smallContentRead)) { rows in
            var (found, large, byteCount) = (Found(), [(key: RegistrationKey, byteCount: Int)](), 0)
            for (key, rows) in zip(keys, rows) {
                let size = try Registrations.storedByteCount(rows)
                byteCount += size
                if size > Registrations.smallByteCount { large.append((key, size)) } else { try add(rows, of: key, to: &found) }
            }
            guard byteCount <= Self.byteLimit else { return .done(nil) }
            // The free size goes to the smallest first.
            large.sort { $0.byteCount < $1.byteCount }
            var bill = ReadingBill(.decision, free: max(ReadingBill.freeByteCount, keys.count * Registrations.smallByteCount))
            _ = bill.charged(byteCount - large.reduce(0) { $0 + $1.byteCount })
            var admitted: [(key: RegistrationKey, byteCount: Int)] = []
            for row in large {
                if limits.refusesReading(row.byteCount, about: row.key.keyHash, on: &bill, at: now) {
                    found.refused.insert(row.key)
                } else {
                    admitted.append(row)
                }
            }
            return readLarge(admitted[...], found, byteCount: 0)
        }
    }

    /// - Parameter byteCount: the memory used by the lists of large registrations.
    private func readLarge(
        _ left: ArraySlice<(key: RegistrationKey, byteCount: Int)>, _ found: Found, byteCount: Int
    ) -> StoreCommand<Found?> {
        guard !left.isEmpty else { return .done(found) }
        guard byteCount <= Self.byteLimit else { return .done(nil) }
        var size = 0
        let chunk = left.prefix { row in
            size += row.byteCount
            return size == row.byteCount || size <= Self.chunkByteCount
        }
        return .read(chunk.map { Registrations.contentRead($0.key, byteCount: $0.byteCount) }) { rows in
            var (found, byteCount) = (found, byteCount)
            for (row, rows) in zip(chunk, rows) {
                try add(rows, of: row.key, to: &found)
                byteCount += found.registered[row.key]?.registration.registration.listByteCount ?? 0
            }
            return readLarge(left.dropFirst(chunk.count), found, byteCount: byteCount)
        }
    }

    private func add(_ rows: [Row], of key: RegistrationKey, to found: inout Found) throws {
        guard case (let device, .registered(let stored), let isNeverAsked)? = try registrations.content(rows, of: key) else { return }
        found.registered[key] = Registered(device: Registrations.device(device), registration: stored, isNeverAsked: isNeverAsked)
    }

    private func outcomes(
        _ request: PushNotificationRequest, _ found: Found, delivery: (DeliveryID) -> DeliveryState?
    ) -> [EntryOutcome] {
        let outcomes = rules.decide(request, registration: { found.registered[$0]?.registration }, delivery: delivery)
        guard !found.refused.isEmpty else { return outcomes }
        return zip(request.requests, outcomes).map { entry, outcome in
            let isRefused = outcome == .report(.notRegistered) && rules.key(of: entry).map(found.refused.contains) == true
            return isRefused ? .report(.internalError) : outcome
        }
    }

    /// The answer to a request that another server has handled.
    private func answerHandled(_ request: PushNotificationRequest, pending: PendingRequest, found: Found) -> Outcome {
        let results = outcomes(request, found) { _ in .accepted }.map { outcome -> PendingRequest.Entry.Result in
            if case .report(let error) = outcome { .known(error) } else { .known(nil) }
        }
        return Outcome(pending: pending.with(results), queued: [])
    }

    private func decide(
        _ request: PushNotificationRequest, pending: PendingRequest, found: Found, expires: Timestamp, at now: Timestamp
    ) -> StoreCommand<Outcome> {
        // Determines the deliveries first, then reads their states.
        var deliveries: [DeliveryID] = []
        let first = outcomes(request, found) { delivery in
            deliveries.append(delivery)
            return nil
        }
        guard !deliveries.isEmpty else { return carryOut(first, pending: pending, found: found, expires: expires, at: now) }
        return DeliveryStorage.states(of: deliveries).then { [deliveries] states in
            let known = Dictionary(zip(deliveries, states).compactMap { id, state in state.map { (id, $0) } }) { first, _ in first }
            let outcomes = known.isEmpty ? first : outcomes(request, found) { known[$0] }
            return carryOut(outcomes, pending: pending, found: found, expires: expires, at: now)
        }
    }

    private func carryOut(
        _ outcomes: [EntryOutcome], pending: PendingRequest, found: Found, expires: Timestamp, at now: Timestamp
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
                guard let device = found.registered[stored.key]?.device, let address = DeviceAddress(stored.registration),
                    !limits.refuses(once: ChargeID(id, at: now), for: owner, { $0.notification(for: stored.key, by: owner, at: now) })
                else {
                    results.append(.known(.internalError))
                    continue
                }
                changes.append(
                    DeliveryStorage.enqueue(
                        id, for: device, payload: StatusPayload.encode(notification), expires: expires,
                        markedAt: isShared ? nil : now, by: registrations.sealer))
                if found.registered[stored.key]?.isNeverAsked == true { changes.append(Registrations.asked(device.row)) }
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
