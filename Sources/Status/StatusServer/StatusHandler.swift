import RateLimits
import NodeAPI
import Delivery
import Logging
import NodeMetrics
import Core
import StatusProtocol
import StatusRules
import Storage
import Waku
import WakuCrypto

/// Handles the messages of the Status protocol: see ``NodeAPI/WakuHandler``.
struct StatusHandler: WakuHandler {
    typealias Command = AddressedCommand

    enum Outcome: Sendable {
        case registration(RegistrationOutcome)
        case request(RequestHandler.Outcome)
    }

    let node: NodeServices
    let topics: TopicTable
    let topicKeys: TopicKeys
    /// nil if keys are derived only when a query needs them.
    let precomputation: TopicKeyPrecomputation?
    /// The node's identities, at least one.
    let servers: [ServedIdentity]
    let versions: RecentVersions
    let registrations: Registrations
    let asked: AskedRows
    let limits: StatusLimits

    // MARK: Decoding

    func keys(of tag: TopicTag) -> MessageKeys {
        switch topics.match(tag) {
        case .own(alsoQueries: false)?, nil: .known([])
        // A registrant's topic has only queries. The node's own topics may have any message.
        case .own(alsoQueries: true)?: topicKeys.known(tag).map(MessageKeys.known) ?? .missingUnlessOwn
        case .query?: topicKeys.known(tag).map(MessageKeys.known) ?? .missing
        }
    }

    func deriveKeys(of tag: TopicTag) async throws -> [SymmetricKey]? {
        try await topicKeys.keys(tag)
    }

    func charge(of tag: TopicTag, at now: Timestamp) -> Charge { limits.charge(of: tag, at: now) }

    func displaced(_ limit: RateLimitTable.Refusal, _ standing: Standing) {
        limits.limiter.displaced(limit, standing)
    }

    func decode(_ incoming: Incoming, keys: [SymmetricKey], at now: Timestamp) throws(Drop) -> Decoded<AddressedCommand> {
        let owners = topics.owners(of: incoming.tag)
        return try StatusRules.decode(asFirstOf: owners) { server, isLast throws(Drop) in
            let (command, whole) = try servers[server].decoder.decode(
                incoming.received, isOwnTopic: !owners.isEmpty, keys: isLast ? keys : [], isRetry: incoming.isRetry, at: now)
            return Decoded(AddressedCommand(command: command, server: server), command.kind, from: incoming, whole: whole)
        }
    }

    private func server(of message: Decoded<AddressedCommand>) -> ServedIdentity { servers[message.command.server] }

    // MARK: Registrations and requests

    func change(_ message: Decoded<AddressedCommand>, at now: Timestamp) -> StoreCommand<Outcome> {
        switch message.command.command {
        case .registration(let claim):
            return server(of: message).registration.change(claim, message.wholeHash, at: now).map(Outcome.registration)
        case .request(let request, let origin, let expires):
            return server(of: message).request.change(
                request, pending(request, origin, message), expires: expires, at: now
            ).map(Outcome.request)
        case .query:
            preconditionFailure("queries change nothing")
        }
    }

    func isLarge(_ message: Decoded<AddressedCommand>) -> Bool {
        if case .request(let request, _, _) = message.command.command { RequestHandler.isLarge(request) } else { false }
    }

    func turns(of message: Decoded<AddressedCommand>, after outcome: Outcome?, at now: Timestamp) -> (charge: Charge, size: Int)? {
        guard isLarge(message), case .request(let request, _, _) = message.command.command else { return nil }
        // The signer is a new key: the registrant that the request is about pays.
        let charge = request.requests.lazy.compactMap { KeyHash(bytes: $0.publicKey) }.first
            .map { limits.charge(of: QueryTopics(of: $0).deployed, at: now) }
        return (charge ?? .unattributed, min(request.requests.count, LargeRequests.partCount))
    }

    func change(_ message: Decoded<AddressedCommand>, after outcome: Outcome, at now: Timestamp) -> StoreCommand<Outcome>? {
        guard case .request(let request, _, let expires) = message.command.command, case .request(let outcome) = outcome,
            !outcome.pending.isDecided
        else { return nil }
        return server(of: message).request.change(request, outcome.pending, expires: expires, at: now).map(Outcome.request)
    }

    func committed(_ message: Decoded<AddressedCommand>, part outcome: Outcome) {
        guard case .request(let outcome) = outcome, let parts = outcome.pending.parts else { return }
        let deliveries = outcome.pending.deliveries(since: outcome.start)
        guard !deliveries.isEmpty else { return }
        let times = outcome.pending.times
        node.delivery.await(parts.part(deliveries, receivedAt: times?.received, trace: times?.trace))
    }

    func queued(by outcome: Outcome) -> [QueuedDelivery] {
        if case .request(let outcome) = outcome { outcome.queued } else { [] }
    }

    func finish(_ message: Decoded<AddressedCommand>, _ result: Result<Outcome, StoreError>) {
        switch (message.command.command, result) {
        case (.registration(let claim), .success(.registration(let outcome))): finish(claim, outcome: outcome, message: message)
        case (.request, .success(.request(let outcome))):
            node.counters.add(.requestTaken)
            finish(outcome.pending, by: server(of: message))
        // The store failed: nothing was stored.
        case (.registration(let claim), _): reply(.internalError, to: claim, message)
        case (.request(let request, let origin, _), _):
            report(pending(request, origin, message), [:], isNew: false, by: server(of: message))
        case (.query, _): break
        }
    }

    private func pending(
        _ request: PushNotificationRequest, _ origin: MessageOrigin, _ message: Decoded<AddressedCommand>
    ) -> PendingRequest {
        PendingRequest(
            request, origin, to: server(of: message).mark, isLarge: RequestHandler.isLarge(request), hash: message.hash,
            pubsubTopic: message.pubsubTopic, times: message.times)
    }

    private func finish(_ claim: RegistrationClaim, outcome: RegistrationOutcome, message: Decoded<AddressedCommand>) {
        node.counters.add(outcome.counter)
        if outcome.counter == .registrationStored || outcome.counter == .registrationOutdated, let key = claim.key {
            versions.note(claim.version, of: key)
        }
        switch outcome.topicChange {
        case .added(let registrant):
            let queryTopics = QueryTopics(of: registrant)
            topicKeys.forget(queryTopics)
            topics.insert(queryTopics)
        case .perhapsRemoved(let registrant):
            limits.limiter.removedRegistration()
            topicKeys.forget(QueryTopics(of: registrant))
        case nil: break
        }
        if let displaced = outcome.displaced {
            node.counters.add(.registrationDisplaced)
            limits.displaced(displaced, at: node.now())
            topicKeys.forget(QueryTopics(of: displaced))
        }
        reply(outcome.error, to: claim, message)
        if case .added(let registrant) = outcome.topicChange { precomputation?.add(registrant) }
    }

    private func reply(
        _ error: PushNotificationRegistrationResponse.ErrorType?, to claim: RegistrationClaim, _ message: Decoded<AddressedCommand>
    ) {
        let response = PushNotificationRegistrationResponse(error: error, requestID: claim.requestID)
        let charge = claim.key.map { limits.charge(of: QueryTopics(of: $0.keyHash).deployed, at: node.now()) }
        node.replies.publish(
            server(of: message).replies.reply(
                .registrationResponse, response.encoded(), to: claim.sender, on: message.pubsubTopic, times: message.times,
                question: message.hash, charge: charge ?? .unattributed))
    }

    /// Answers a request when the outcomes of its deliveries are known.
    private func finish(_ pending: PendingRequest, by server: ServedIdentity) {
        let deliveries = pending.deliveries
        guard !deliveries.isEmpty else { return report(pending, [:], isNew: false, by: server) }
        let completion: @Sendable (AwaitedDeliveries.Results) -> Void = { results in
            if results.isImmediate { node.counters.add(.requestWhileOpen) }
            report(pending, results.outcomes, isNew: true, by: server)
        }
        if let parts = pending.parts { return parts.finish(completion) }
        node.delivery.await(
            AwaitedDeliveries(deliveries, receivedAt: pending.times?.received, trace: pending.times?.trace, completion: completion))
    }

    /// - Parameter isNew: whether to store its final answer.
    private func report(
        _ pending: PendingRequest, _ outcomes: [DeliveryID: DeliveryOutcome], isNew: Bool, by server: ServedIdentity
    ) {
        let errors = pending.errors(outcomes)
        node.counters.add(.requestAnswered)
        for (entry, token) in pending.accepted(outcomes) { limits.accepted(token, of: entry, at: node.now()) }
        for error in errors { node.counters.increment(.reports, ReportLabel(error)) }
        if isNew, let codes = AnswerCode.final(errors) {
            // Not awaited: the store has it in its queue before the same request can be decided again.
            node.store.enqueue(.change([AnswerStorage.remember(codes, to: pending.envelopeID, at: node.now())]))
        }
        node.replies.publish(
            server.replies.reply(
                .response, pending.response(errors).encoded(), to: pending.sender, on: pending.pubsubTopic, times: pending.times,
                question: pending.hash, charge: charge(of: pending)))
    }

    /// The payer of a report: the first registrant for whom the request had a valid access token. Requests without one can name anyone: the first
    /// registrant pays for them as a stranger.
    private func charge(of pending: PendingRequest) -> Charge {
        let now = node.now()
        if let registrant = pending.firstEntitled { return limits.charge(of: QueryTopics(of: registrant).deployed, at: now) }
        let named = pending.entries.lazy.compactMap { KeyHash(bytes: $0.publicKey) }.first
        return named.map { Charge(limits.charge(of: QueryTopics(of: $0).deployed, at: now).payer, .stranger) } ?? .unattributed
    }

    // MARK: Queries

    /// The answer to a query, of each identity with which one of the keys is registered; nil if there is none.
    func answer(_ message: Decoded<AddressedCommand>, at now: Timestamp) -> StoreCommand<Reply?> {
        guard case .query(let query, let origin) = message.command.command else { return .done(nil) }
        let registrants = servers[0].queries.registrants(in: query).filter { registrant in
            !limits.refuses { $0.query(about: registrant, at: now) }
        }
        return registrations.registrations(
            of: limits.readingOrder(registrants, at: now), within: QueryBudget(),
            isServed: { [servers] mark in servers.contains { $0.mark == mark } },
            admits: { [limits] in !limits.refusesReading($2, about: $1, on: &$0, at: now) }, noteAsked: { [asked] in asked.insert($0) }
        ).map { found in
            // Unanswered parts of a query earn nothing for the registrants of the others.
            let part = message.byteCount / max(1, registrants.count)
            let (admitted, charges) = withinLimits(found, queryByteCount: part, at: now)
            return Reply(
                joining: servers.compactMap { server in
                    let own = servers.count == 1 ? admitted : admitted.filter { $0.key.server == server.mark }
                    return answer(own, charges, by: server, to: origin, message, at: now)
                })
        }
    }

    private func answer(
        _ admitted: [StoredRegistration], _ charges: [KeyHash: Charge], by server: ServedIdentity, to origin: MessageOrigin,
        _ message: Decoded<AddressedCommand>, at now: Timestamp
    ) -> Reply? {
        guard let response = server.queries.answer(admitted, messageID: origin.id) else { return nil }
        let payload = response.encoded()
        let charge = admitted.first.map { charges[$0.key.keyHash] ?? limits.charge(of: $0.registration, at: now) } ?? .unattributed
        if limits.refuses(for: charge, { $0.answer(byteCount: payload.count, for: charge, at: now) }) { return nil }
        return server.replies.reply(
            .queryResponse, payload, to: origin.sender, on: message.pubsubTopic, times: message.times, question: message.hash,
            charge: charge)
    }

    func answered(_ message: Decoded<AddressedCommand>, _ reply: Reply?) {
        node.counters.add(reply == nil ? .queryUnanswered : .queryAnswered)
    }

    /// Removes registrants over their answer rate, with all of their rows. Returns the charge of each registrant too; none without limits.
    private func withinLimits(
        _ found: [StoredRegistration], queryByteCount: Int, at now: Timestamp
    ) -> (admitted: [StoredRegistration], charges: [KeyHash: Charge]) {
        guard !limits.limiter.isUnlimited else { return (found, [:]) }
        var sizes: [KeyHash: (byteCount: Int, charge: Charge)] = [:]
        for stored in found {
            let size = sizes[stored.key.keyHash]
            sizes[stored.key.keyHash] = (
                (size?.byteCount ?? 0) + QueryBudget.byteCount(of: stored), size?.charge ?? limits.charge(of: stored.registration, at: now)
            )
        }
        let refused = sizes.filter { registrant, size in
            limits.refuses(for: size.charge) {
                $0.answer(byteCount: size.byteCount, about: registrant, queryByteCount: queryByteCount, size.charge.standing, at: now)
            }
        }
        return (refused.isEmpty ? found : found.filter { refused[$0.key.keyHash] == nil }, sizes.mapValues(\.charge))
    }
}
