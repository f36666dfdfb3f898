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
    typealias Command = StatusCommand

    enum Outcome: Sendable {
        case registration(RegistrationOutcome)
        case request(RequestHandler.Outcome)
    }

    let node: NodeServices
    let topics: TopicTable
    let topicKeys: TopicKeys
    /// nil if keys are derived only when a query needs them.
    let precomputation: TopicKeyPrecomputation?
    let decoder: StatusDecoder
    let versions: RecentVersions
    let registration: RegistrationHandler
    let request: RequestHandler
    let queries: QueryRules
    let limits: StatusLimits
    let replies: StatusReplies

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

    func decode(_ incoming: Incoming, keys: [SymmetricKey], at now: Timestamp) throws(Drop) -> Decoded<StatusCommand> {
        let (command, whole) = try decoder.decode(
            incoming.received, isOwnTopic: topics.isOwn(incoming.tag), keys: keys, isRetry: incoming.isRetry, at: now)
        return Decoded(command, command.kind, from: incoming, whole: whole)
    }

    // MARK: Registrations and requests

    func change(_ message: Decoded<StatusCommand>, at now: Timestamp) -> StoreCommand<Outcome> {
        switch message.command {
        case .registration(let claim):
            return registration.change(claim, message.wholeHash, at: now).map(Outcome.registration)
        case .request(let request, let envelope, let expires):
            let pending = PendingRequest(
                request, envelope, hash: message.hash, pubsubTopic: message.pubsubTopic, times: message.times)
            return self.request.change(request, pending, expires: expires, at: now).map(Outcome.request)
        case .query:
            preconditionFailure("queries change nothing")
        }
    }

    func queued(by outcome: Outcome) -> [QueuedDelivery] {
        if case .request(let outcome) = outcome { outcome.queued } else { [] }
    }

    func finish(_ message: Decoded<StatusCommand>, _ result: Result<Outcome, StoreError>) {
        switch (message.command, result) {
        case (.registration(let claim), .success(.registration(let outcome))): finish(claim, outcome: outcome, message: message)
        case (.request, .success(.request(let outcome))):
            node.counters.add(.requestTaken)
            finish(outcome.pending)
        // The store failed: nothing was stored.
        case (.registration(let claim), _): reply(.internalError, to: claim, message)
        case (.request(let request, let envelope, _), _):
            report(
                PendingRequest(request, envelope, hash: message.hash, pubsubTopic: message.pubsubTopic, times: message.times),
                [:], isNew: false)
        case (.query, _): break
        }
    }

    private func finish(_ claim: RegistrationClaim, outcome: RegistrationOutcome, message: Decoded<StatusCommand>) {
        node.counters.add(outcome.counter)
        if outcome.counter == .registrationStored || outcome.counter == .registrationOutdated, let key = claim.key {
            versions.note(claim.version, of: key)
        }
        switch outcome.topicChange {
        case .added(let registrant):
            let queryTopics = QueryTopics(of: registrant)
            topicKeys.forget(queryTopics)
            topics.insert(queryTopics)
        case .perhapsRemoved(let registrant): topicKeys.forget(QueryTopics(of: registrant))
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
        _ error: PushNotificationRegistrationResponse.ErrorType?, to claim: RegistrationClaim, _ message: Decoded<StatusCommand>
    ) {
        let response = PushNotificationRegistrationResponse(error: error, requestID: claim.requestID)
        node.replies.publish(
            replies.reply(
                .registrationResponse, response.encoded(), to: claim.sender, on: message.pubsubTopic, times: message.times,
                question: message.hash))
    }

    /// Answers a request when the outcomes of its deliveries are known.
    private func finish(_ pending: PendingRequest) {
        let deliveries = pending.deliveries
        guard !deliveries.isEmpty else { return report(pending, [:], isNew: false) }
        node.delivery.await(
            AwaitedDeliveries(deliveries, receivedAt: pending.times?.received) { results in
                if results.isImmediate { node.counters.add(.requestWhileOpen) }
                report(pending, results.outcomes, isNew: true)
            })
    }

    /// - Parameters:
    ///   - outcomes: the outcomes of its deliveries.
    ///   - isNew: whether to store its final answer.
    private func report(_ pending: PendingRequest, _ outcomes: [DeliveryID: DeliveryOutcome], isNew: Bool) {
        let errors = pending.errors(outcomes)
        node.counters.add(.requestAnswered)
        for (entry, token) in pending.accepted(outcomes) { limits.accepted(token, of: entry, at: node.now()) }
        for error in errors { node.counters.increment(.reports, ReportLabel(error)) }
        if isNew, let codes = AnswerCode.final(errors) {
            // Not awaited: the store has it in its queue before the same request can be decided again.
            node.store.enqueue(.change([AnswerStorage.remember(codes, to: pending.envelopeID, at: node.now())]))
        }
        node.replies.publish(
            replies.reply(
                .response, pending.response(errors).encoded(), to: pending.sender, on: pending.pubsubTopic, times: pending.times,
                question: pending.hash))
    }

    // MARK: Queries

    /// The answer to a query; nil if none of the keys is registered.
    func answer(_ message: Decoded<StatusCommand>, at now: Timestamp) -> StoreCommand<Reply?> {
        guard case .query(let query, let envelope) = message.command else { return .done(nil) }
        let registrants = queries.registrants(in: query).filter { registrant in
            !limits.refuses { $0.query(about: registrant, at: now) }
        }
        return registration.registrations.registrations(
            of: registrants, within: QueryBudget(), noteAsked: { [asked = registration.asked] in asked.insert($0) }
        ).map { found in
            // Unanswered parts of a query earn nothing for the registrants of the others.
            let part = message.byteCount / max(1, registrants.count)
            let admitted = withinLimits(found, queryByteCount: part, at: now)
            guard let response = queries.answer(admitted, messageID: envelope.id) else { return nil }
            let payload = response.encoded()
            let charge = admitted.first.map { limits.charge(of: $0.registration, at: now) } ?? .unattributed
            if limits.refuses(for: charge, { $0.answer(byteCount: payload.count, for: charge, at: now) }) { return nil }
            return replies.reply(
                .queryResponse, payload, to: envelope.sender, on: message.pubsubTopic, times: message.times, question: message.hash)
        }
    }

    func answered(_ message: Decoded<StatusCommand>, _ reply: Reply?) {
        node.counters.add(reply == nil ? .queryUnanswered : .queryAnswered)
    }

    /// Removes registrants over their answer rate, with all of their rows.
    private func withinLimits(_ found: [StoredRegistration], queryByteCount: Int, at now: Timestamp) -> [StoredRegistration] {
        guard !limits.limiter.isUnlimited else { return found }
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
        return refused.isEmpty ? found : found.filter { refused[$0.key.keyHash] == nil }
    }
}
