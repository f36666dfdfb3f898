import RateLimits
import Delivery
import NodeMetrics
import Core
import StatusProtocol
import StatusRules
import Storage

/// A request whose acknowledgement is known, or waits for deliveries.
struct V01PendingRequest: Sendable {
    /// The basis of the acknowledgement.
    enum State: Sendable {
        /// The acknowledgement of an earlier, identical request.
        case known(V01.Acknowledgement.ErrorType?)
        /// Depends on the outcomes of these deliveries; there may be none.
        case awaiting(Set<DeliveryID>, hasBadToken: Bool, isRefused: Bool)
    }

    var state: State

    /// A request that failed as a whole.
    static let failed = V01PendingRequest(state: .awaiting([], hasBadToken: false, isRefused: true))

    var deliveries: Set<DeliveryID> {
        if case .awaiting(let deliveries, _, _) = state { deliveries } else { [] }
    }

    /// The result for the sender.
    ///
    /// - Parameter outcomes: The outcomes of the awaited deliveries.
    /// - Returns: The error, nil for success; and whether to store the result as final.
    func verdict(_ outcomes: [DeliveryID: DeliveryOutcome]) -> (error: V01.Acknowledgement.ErrorType?, isFinal: Bool) {
        switch state {
        case .known(let error): return (error, false)
        case .awaiting(let deliveries, let hasBadToken, let isRefused):
            let areAllTaken = !isRefused && deliveries.allSatisfy { outcomes[$0] == .accepted }
            return (V01.RequestDecision.error(hasBadToken: hasBadToken, areAllTaken: areAllTaken), areAllTaken)
        }
    }
}

/// Decides on requests and the notifications that they put into the outbox, as a pure function of stored rows.
struct V01RequestHandler: Sendable {
    struct Outcome: Sendable {
        let pending: V01PendingRequest
        let queued: [QueuedDelivery]
    }

    let records: Records
    /// The identity to which requests are sent.
    var server: ServerMark?
    let limits: V01Limits
    /// The APNs topic of notifications; empty for none.
    let apnsTopic: String
    /// Whether other nodes post from the outbox too.
    var isShared = false

    func change(
        _ request: V01.Request, key: [UInt8], expires: Timestamp, times: MessageTimes?, at now: Timestamp
    ) -> StoreCommand<Outcome> {
        V01Answers.answer(to: key).then { known in
            if let known { return .done(Outcome(pending: V01PendingRequest(state: .known(known)), queued: [])) }
            return records.selection(by: Array(Set(request.requests.map(\.accessToken))), at: server).then { selection in
                guard let selection else { return .done(Outcome(pending: .failed, queued: [])) }
                return decide(request, key: key, selection: selection, expires: expires, times: times, at: now)
            }
        }
    }

    private func decide(
        _ request: V01.Request, key: [UInt8], selection: Records.Selection, expires: Timestamp, times: MessageTimes?,
        at now: Timestamp
    ) -> StoreCommand<Outcome> {
        // Determines the deliveries first, then reads their states.
        let first = V01.RequestRules.decide(request, record: { selection.records[$0] }, delivery: { _ in nil })
        guard !first.started.isEmpty else {
            return carryOut(first, request: request, key: key, selection: selection, expires: expires, times: times, at: now)
        }
        let ids = first.started.map(\.id)
        return DeliveryStorage.states(of: ids).then { states in
            let known = Dictionary(zip(ids, states).compactMap { id, state in state.map { (id, $0) } }) { first, _ in first }
            let decision =
                known.isEmpty
                ? first : V01.RequestRules.decide(request, record: { selection.records[$0] }, delivery: { known[$0] })
            return carryOut(decision, request: request, key: key, selection: selection, expires: expires, times: times, at: now)
        }
    }

    private struct Planned: Sendable {
        let notification: V01.PlannedNotification
        let device: DeviceID
        let version: UInt64
    }

    private func carryOut(
        _ decision: V01.RequestDecision, request: V01.Request, key: [UInt8], selection: Records.Selection, expires: Timestamp,
        times: MessageTimes?, at now: Timestamp
    ) -> StoreCommand<Outcome> {
        var isRefused = decision.isRefused
        var planned: [Planned] = []
        var versions: [V01.KeyHash: UInt64] = [:]
        for record in selection.records.values { versions[record.registrant] = record.preferences.version }
        for notification in decision.started {
            let (registrant, installation) = (notification.registrant, notification.device.installationID)
            let owner = limits.charge(of: registrant, at: now)
            guard let row = selection.devices[registrant]?[installation], let version = versions[registrant],
                !limits.refuses(for: owner, { $0.notification(for: registrant.bytes + installation.bytes, by: owner, at: now) })
            else {
                isRefused = true
                continue
            }
            planned.append(Planned(notification: notification, device: Records.device(row), version: version))
        }
        var changes = planned.map { planned in
            DeliveryStorage.enqueue(
                planned.notification.id, for: planned.device,
                payload: V01Payload.encode(chatID: planned.notification.chatID, message: request.message), expires: expires,
                markedAt: isShared ? nil : now, by: records.sealer)
        }
        let pending = V01PendingRequest(
            state: .awaiting(
                Set(planned.map(\.notification.id) + decision.awaited), hasBadToken: decision.hasBadToken, isRefused: isRefused))
        if pending.deliveries.isEmpty {
            let verdict = pending.verdict([:])
            if verdict.isFinal { changes.append(V01Answers.remember(verdict.error, to: key, at: now)) }
        }
        return .apply(changes) { [planned] inserted in
            Outcome(
                pending: pending, queued: queued(planned, rows: inserted, message: request.message, expires: expires, times: times, at: now)
            )
        }
    }

    private func queued(
        _ planned: [Planned], rows: [Int64], message: [UInt8], expires: Timestamp, times: MessageTimes?,
        at now: Timestamp
    ) -> [QueuedDelivery] {
        var group: Int64?
        var previous: V01.PlannedNotification?
        return zip(planned, rows).map { planned, row in
            let notification = planned.notification
            if previous?.platform != notification.platform || previous?.chatID != notification.chatID { group = row }
            previous = notification
            let address = DeviceAddress(
                version: planned.version, platform: notification.platform, deviceToken: notification.device.token,
                apnTopic: notification.platform == .apn ? apnsTopic : "")
            let content = V01Content(
                chatID: notification.chatID, message: message, installationID: notification.device.installationID)
            let waiting = WaitingDelivery(
                id: row, delivery: notification.id, device: planned.device, expires: expires, markedAt: isShared ? nil : now)
            return QueuedDelivery(PostableDelivery(waiting, to: address, content), times: times, group: group)
        }
    }
}
