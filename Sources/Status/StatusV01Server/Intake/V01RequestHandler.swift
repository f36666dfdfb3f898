import RateLimits
import Delivery
import NodeAPI
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

        /// With the results of further entries.
        func adding(_ further: Set<DeliveryID>, hasBadToken: Bool = false, isRefused: Bool) -> State {
            guard case .awaiting(let deliveries, let hadBadToken, let wasRefused) = self else { return self }
            return .awaiting(
                deliveries.union(further), hasBadToken: hadBadToken || hasBadToken, isRefused: wasRefused || isRefused)
        }
    }

    var state = State.awaiting([], hasBadToken: false, isRefused: false)
    /// The number of entries, from the first, that are decided.
    var decidedCount = 0
    /// The number of entries whose records are looked up for the next part.
    var nextCount = LargeRequests.partCount
    /// The maximum number of devices in the next part; if it is ``NodeAPI/LargeRequests/partCount``, its first account may have any number.
    var size = LargeRequests.smallCount
    /// Whether the next part takes turns with those of other requests.
    var isLarge = false
    /// What these have left for the others.
    var room = V01.RecordRoom()
    /// nil unless a part follows another.
    var parts: AwaitedParts?
    /// The registrants and device tokens of deliveries that this request started.
    var tokens: [DeliveryID: Token] = [:]

    struct Token: Sendable {
        let registrant: V01.KeyHash
        let payer: Payer
    }

    /// A request that failed as a whole.
    static let failed = V01PendingRequest(state: .awaiting([], hasBadToken: false, isRefused: true))

    var deliveries: Set<DeliveryID> {
        if case .awaiting(let deliveries, _, _) = state { deliveries } else { [] }
    }

    /// The result for the sender.
    ///
    /// - Returns: The error, nil for success; and whether to store the result as final.
    func verdict(_ outcomes: [DeliveryID: DeliveryOutcome]) -> (error: V01.Acknowledgement.ErrorType?, isFinal: Bool) {
        switch state {
        case .known(let error): return (error, false)
        case .awaiting(let deliveries, let hasBadToken, let isRefused):
            let areAllTaken = !isRefused && deliveries.allSatisfy { outcomes[$0]?.isAccepted ?? false }
            return (V01.RequestDecision.error(hasBadToken: hasBadToken, areAllTaken: areAllTaken), areAllTaken)
        }
    }
}

extension V01PendingRequest {
    /// A request before its first part.
    init(of request: V01.Request) {
        isLarge = V01RequestHandler.isLarge(request)
        if isLarge { size = Self.firstSize(ofEntries: request.requests.count) }
    }

    /// The room for the devices of accounts that were not looked up yet. An account rarely has more than two.
    fileprivate static func firstSize(ofEntries count: Int) -> Int { min(2 * count, LargeRequests.partCount) }
}

/// Decides on requests and the notifications that they put into the outbox, as a pure function of stored rows.
struct V01RequestHandler: Sendable {
    struct Outcome: Sendable {
        let pending: V01PendingRequest
        /// The notifications of the last part.
        let queued: [QueuedDelivery]
        /// The deliveries that the last part waits for.
        var deliveries: Set<DeliveryID> = []
    }

    let records: Records
    /// The identity to which requests are sent.
    var server: ServerMark?
    let limits: V01Limits
    /// The APNs topic of notifications; empty for none.
    let apnsTopic: String
    /// Whether other nodes post from the outbox too.
    var isShared = false

    /// The next entries of a request, with all that their decision needs.
    private struct Part: Sendable {
        let request: V01.Request
        /// The entries before.
        let former: V01PendingRequest
        /// The number of entries after.
        let leftCount: Int
        let key: [UInt8]
        let expires: Timestamp
        let times: MessageTimes?
        let now: Timestamp

        /// - Parameter room: what this part leaves for the next; nil: as much as before.
        func outcome(
            _ state: V01PendingRequest.State, room: V01.RecordRoom? = nil, _ deliveries: Set<DeliveryID> = [],
            tokens: [DeliveryID: V01PendingRequest.Token] = [:], _ queued: [QueuedDelivery] = []
        ) -> Outcome {
            var pending = former
            pending.tokens.merge(tokens) { first, _ in first }
            pending.state = state
            pending.room = room ?? former.room
            pending.decidedCount += request.requests.count
            let isEmpty = request.requests.isEmpty
            // Where accounts have many devices, most entries of a part would be looked up in vain.
            if former.isLarge, !isEmpty { pending.nextCount = min(2 * request.requests.count, LargeRequests.partCount) }
            if leftCount > 0 {
                if isEmpty {
                    // The next account has more devices.
                    pending.size = LargeRequests.partCount
                } else if former.isLarge {
                    pending.size = min(2 * former.size, LargeRequests.partCount)
                } else {
                    pending.size = V01PendingRequest.firstSize(ofEntries: leftCount)
                }
                pending.isLarge = true
                pending.parts = former.parts ?? AwaitedParts()
            }
            return Outcome(pending: pending, queued: queued, deliveries: deliveries)
        }
    }

    static func isLarge(_ request: V01.Request) -> Bool { request.requests.count > LargeRequests.smallCount }

    /// Decides the next entries of a request, up to ``NodeAPI/LargeRequests/partCount``, with the devices that ``V01PendingRequest/size`` has room for.
    /// Their number is known when the records are looked up: of a request with few entries, ``NodeAPI/LargeRequests/smallCount`` devices are decided at
    /// once, and others in turn.
    func change(
        _ request: V01.Request, after former: V01PendingRequest, key: [UInt8], expires: Timestamp, times: MessageTimes?, at now: Timestamp
    ) -> StoreCommand<Outcome> {
        let entries = request.requests[former.decidedCount...].prefix(former.nextCount)
        let part = { @Sendable (entries: ArraySlice<V01.PushNotification>) in
            var next = request
            next.requests = Array(entries)
            return Part(
                request: next, former: former, leftCount: request.requests.endIndex - entries.endIndex, key: key, expires: expires,
                times: times, now: now)
        }
        var seen: Set<AccessToken> = []
        let tokens = entries.map(\.accessToken).filter { seen.insert($0).inserted }
        let room = Records.SelectionRoom(
            deviceCount: former.size, hasFirst: former.size == LargeRequests.partCount,
            freeByteCount: former.decidedCount == 0 ? ReadingBill.freeByteCount : 0)
        return V01Answers.answer(to: key).then { known in
            if let known {
                var pending = former
                (pending.state, pending.decidedCount) = (.known(known), request.requests.count)
                return .done(Outcome(pending: pending, queued: []))
            }
            return records.selection(
                by: tokens, at: server, within: room,
                admits: { [limits] in !limits.refusesReading($2, about: $1, on: &$0, at: now) }
            ).then { selection in
                guard let selection else { return .done(part(entries).outcome(former.state.adding([], isRefused: true))) }
                return decide(part(entries.prefix { !selection.later.contains($0.accessToken) }), selection: selection)
            }
        }
    }

    private func decide(_ part: Part, selection: Records.Selection) -> StoreCommand<Outcome> {
        // Determines the deliveries first, then reads their states.
        let first = decision(part, selection) { _ in nil }
        guard !first.started.isEmpty else { return carryOut(first, part, selection: selection) }
        let ids = first.started.map(\.id)
        return DeliveryStorage.states(of: ids).then { states in
            let known = Dictionary(zip(ids, states).compactMap { id, state in state.map { (id, $0) } }) { first, _ in first }
            return carryOut(known.isEmpty ? first : decision(part, selection) { known[$0] }, part, selection: selection)
        }
    }

    private func decision(
        _ part: Part, _ selection: Records.Selection, delivery: (DeliveryID) -> DeliveryState?
    ) -> V01.RequestDecision {
        var request = part.request
        if !selection.refused.isEmpty { request.requests.removeAll { selection.refused.contains($0.accessToken) } }
        var decision = V01.RequestRules.decide(
            request, room: part.former.room, record: { selection.records[$0] }, delivery: delivery)
        decision.isRefused = decision.isRefused || !selection.refused.isEmpty
        return decision
    }

    private struct Planned: Sendable {
        let notification: V01.PlannedNotification
        let device: DeviceID
        let version: UInt64
    }

    private func carryOut(_ decision: V01.RequestDecision, _ part: Part, selection: Records.Selection) -> StoreCommand<Outcome> {
        let now = part.now
        var isRefused = decision.isRefused
        var planned: [Planned] = []
        var versions: [V01.KeyHash: UInt64] = [:]
        for record in selection.records.values { versions[record.registrant] = record.preferences.version }
        for notification in decision.started {
            let (registrant, installation) = (notification.registrant, notification.device.installationID)
            let owner = limits.charge(of: registrant, at: now)
            guard let row = selection.devices[registrant]?[installation], let version = versions[registrant],
                !limits.refuses(
                    once: ChargeID(notification.id, at: now), for: owner,
                    { $0.notification(for: registrant.bytes + installation.bytes, by: owner, at: now) })
            else {
                isRefused = true
                continue
            }
            planned.append(Planned(notification: notification, device: Records.device(row), version: version))
        }
        var changes = planned.map { planned in
            DeliveryStorage.enqueue(
                planned.notification.id, for: planned.device,
                payload: V01Payload.encode(chatID: planned.notification.chatID, message: part.request.message), expires: part.expires,
                markedAt: isShared ? nil : now, by: records.sealer)
        }
        let deliveries = Set(planned.map(\.notification.id) + decision.awaited)
        let state = part.former.state.adding(deliveries, hasBadToken: decision.hasBadToken, isRefused: isRefused)
        let outcome = part.outcome(state, room: decision.room, deliveries)
        if part.leftCount == 0, outcome.pending.deliveries.isEmpty {
            let verdict = outcome.pending.verdict([:])
            if verdict.isFinal { changes.append(V01Answers.remember(verdict.error, to: part.key, at: now)) }
        }
        let payers = limits.standings.hasher
        var tokens: [DeliveryID: V01PendingRequest.Token] = [:]
        for notification in planned.map(\.notification) {
            let payer = payers.payer(.deviceToken, notification.device.token.bytes)
            tokens[notification.id] = V01PendingRequest.Token(registrant: notification.registrant, payer: payer)
        }
        return .apply(changes) { [planned, tokens] inserted in
            part.outcome(state, room: decision.room, deliveries, tokens: tokens, queued(planned, rows: inserted, part))
        }
    }

    private func queued(_ planned: [Planned], rows: [Int64], _ part: Part) -> [QueuedDelivery] {
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
                chatID: notification.chatID, message: part.request.message, installationID: notification.device.installationID)
            let waiting = WaitingDelivery(
                id: row, delivery: notification.id, device: planned.device, expires: part.expires,
                markedAt: isShared ? nil : part.now)
            return QueuedDelivery(waiting, to: address, content, times: part.times, group: group)
        }
    }
}
