import RateLimits
import NodeAPI
import Delivery
import NodeMetrics
import Core
import StatusProtocol
import StatusRules
import Storage
import Waku
import WakuCrypto

/// Handles the messages of version 0.1: see ``NodeAPI/WakuHandler``.
struct V01Handler: WakuHandler {
    typealias Command = V01AddressedCommand

    enum Outcome: Sendable {
        case register(V01RegisterHandler.Outcome)
        case request(V01RequestHandler.Outcome)
    }

    let node: NodeServices
    /// The node's identities, at least one.
    let servers: [V01ServedIdentity]
    /// The identities that each topic belongs to, by their index.
    let owners: [TopicTag: [Int]]
    let records: Records
    let limits: V01Limits

    func decode(_ incoming: Incoming, keys: [SymmetricKey], at now: Timestamp) throws(Drop) -> Decoded<V01AddressedCommand> {
        try StatusRules.decode(asFirstOf: owners[incoming.tag] ?? []) { server, _ throws(Drop) in
            let (command, whole) = try servers[server].decoder.decode(incoming.received.message, isRetry: incoming.isRetry, at: now)
            return Decoded(V01AddressedCommand(command: command, server: server), command.kind, from: incoming, whole: whole)
        }
    }

    private func server(of message: Decoded<V01AddressedCommand>) -> V01ServedIdentity { servers[message.command.server] }

    // MARK: Registrations and requests

    func change(_ message: Decoded<V01AddressedCommand>, at now: Timestamp) -> StoreCommand<Outcome> {
        switch message.command.command {
        case .register(let claim): return server(of: message).register.change(claim, at: now).map(Outcome.register)
        case .request(let request, let key, let expires):
            return server(of: message).request.change(
                request, after: V01PendingRequest(of: request), key: key, expires: expires, times: message.times, at: now
            ).map(Outcome.request)
        case .query: preconditionFailure("queries change nothing")
        }
    }

    func isLarge(_ message: Decoded<V01AddressedCommand>) -> Bool {
        if case .request(let request, _, _) = message.command.command { V01RequestHandler.isLarge(request) } else { false }
    }

    func turns(of message: Decoded<V01AddressedCommand>, after outcome: Outcome?, at now: Timestamp) -> (charge: Charge, size: Int)? {
        guard case .request(let request, _, _) = message.command.command, let charge = charge(of: request) else { return nil }
        let pending = if case .request(let outcome) = outcome { outcome.pending } else { V01PendingRequest(of: request) }
        return (charge, pending.size)
    }

    /// The payer of a request: its first access token, as which registrant it belongs to is read with the first part. nil for an empty request.
    private func charge(of request: V01.Request) -> Charge? {
        request.requests.first.map { Charge(limits.standings.hasher.payer(.registrant, $0.accessToken.bytes), .stranger) }
    }

    func change(_ message: Decoded<V01AddressedCommand>, after outcome: Outcome, at now: Timestamp) -> StoreCommand<Outcome>? {
        guard case .request(let request, let key, let expires) = message.command.command, case .request(let outcome) = outcome,
            outcome.pending.decidedCount < request.requests.count
        else { return nil }
        return server(of: message).request.change(
            request, after: outcome.pending, key: key, expires: expires, times: message.times, at: now
        ).map(Outcome.request)
    }

    func committed(_ message: Decoded<V01AddressedCommand>, part outcome: Outcome) {
        guard case .request(let outcome) = outcome, let parts = outcome.pending.parts, !outcome.deliveries.isEmpty else { return }
        node.delivery.await(parts.part(outcome.deliveries, receivedAt: message.times?.received, trace: message.times?.trace))
    }

    func queued(by outcome: Outcome) -> [QueuedDelivery] {
        if case .request(let outcome) = outcome { outcome.queued } else { [] }
    }

    func finish(_ message: Decoded<V01AddressedCommand>, _ result: Result<Outcome, StoreError>) {
        switch (message.command.command, result) {
        case (.register(let claim), .success(.register(let outcome))):
            limits.limiter.removedRegistration(count: outcome.endedDevices)
            let answer = V01.RegistrationResponse(
                error: outcome.error, requestID: claim.requestID, preferences: outcome.preferences
            ).encoded()
            if outcome.preferences != nil, limits.refusesRecord(of: answer.count, to: claim, message.byteCount, at: node.now()) {
                node.counters.add(.v01OverLimit)
                return fail(claim, message)
            }
            node.counters.add(outcome.counter)
            reply(answer, to: claim, message)
        case (.request(let request, let key, _), .success(.request(let outcome))):
            node.counters.add(.v01RequestTaken)
            finish(outcome.pending, request: request, key: key, message: message)
        // The store failed: nothing was stored.
        case (.register(let claim), _): fail(claim, message)
        case (.request(let request, _, _), _): acknowledge(.failed, outcomes: [:], request: request, message: message)
        case (.query, _): break
        }
    }

    private func fail(_ claim: V01.RegisterClaim, _ message: Decoded<V01AddressedCommand>) {
        reply(V01.RegistrationResponse(error: .internalError, requestID: claim.requestID).encoded(), to: claim, message)
    }

    private func reply(_ answer: [UInt8], to claim: V01.RegisterClaim, _ message: Decoded<V01AddressedCommand>) {
        node.replies.publish(
            server(of: message).replies.reply(
                .registrationResponse, answer, to: claim.sender, message, for: limits.charge(of: claim.keyHash, at: node.now()),
                expires: false))
    }

    /// Acknowledges a request when the outcomes of its deliveries are known.
    private func finish(_ pending: V01PendingRequest, request: V01.Request, key: [UInt8], message: Decoded<V01AddressedCommand>) {
        let deliveries = pending.deliveries
        guard !deliveries.isEmpty else { return acknowledge(pending, outcomes: [:], request: request, message: message) }
        let completion: @Sendable (AwaitedDeliveries.Results) -> Void = { results in
            for (id, token) in pending.tokens where results.outcomes[id] == .accepted {
                limits.accepted(token.payer, of: token.registrant, at: node.now())
            }
            let verdict = pending.verdict(results.outcomes)
            if verdict.isFinal {
                // Not awaited: the store has it in its queue before the same request can be decided again.
                node.store.enqueue(.change([V01Answers.remember(verdict.error, to: key, at: node.now())]))
            }
            acknowledge(pending, outcomes: results.outcomes, request: request, message: message)
        }
        if let parts = pending.parts { return parts.finish(completion) }
        node.delivery.await(
            AwaitedDeliveries(deliveries, receivedAt: message.times?.received, trace: message.times?.trace, completion: completion))
    }

    private func acknowledge(
        _ pending: V01PendingRequest, outcomes: [DeliveryID: DeliveryOutcome], request: V01.Request,
        message: Decoded<V01AddressedCommand>
    ) {
        guard let ackKey = V01.AckKey(request.ackKey) else {
            node.counters.add(.v01Unacknowledged)
            return node.handled.note(message.hash)
        }
        let error = pending.verdict(outcomes).error
        node.counters.increment(.acknowledgements, AcknowledgementLabel(error))
        // A registrant for whom the request had a valid access token, if there is one.
        let charge = pending.tokens.values.first.map { limits.charge(of: $0.registrant, at: node.now()) } ?? charge(of: request)
        node.replies.publish(
            server(of: message).replies.acknowledgement(error, under: ackKey, message, for: charge ?? .unattributed))
    }

    // MARK: Queries

    /// The answer to a query; nil if there are no rows.
    func answer(_ message: Decoded<V01AddressedCommand>, at now: Timestamp) -> StoreCommand<Reply?> {
        guard case .query(let query, let sender) = message.command.command else { return .done(nil) }
        let registrants = V01.QueryRules.registrants(in: query).filter { registrant in
            !limits.refuses { $0.query(about: registrant.bytes, at: now) }
        }
        let server = server(of: message)
        return records.records(
            of: registrants.map { $0.registered(with: server.mark) },
            admits: { [limits] in !limits.refusesReading($2, about: $1, on: &$0, at: now) }
        ).map { found in
            let part = message.byteCount / max(1, registrants.count)
            var payer = Charge.unattributed
            let rows = found.flatMap { record -> [V01.QueryInfo] in
                let rows = V01.QueryRules.rows(of: record.registrant, record.preferences)
                let byteCount = rows.reduce(0) { $0 + V01.QueryRules.byteCount(of: $1) }
                // A registrant over its limit is left out with all of its rows.
                let charge = limits.charge(of: record.registrant, at: now)
                let isRefused =
                    !rows.isEmpty
                    && limits.refuses(for: charge) {
                        $0.answer(
                            byteCount: byteCount, about: record.registrant.bytes, queryByteCount: part, charge.standing, at: now)
                    }
                if payer == .unattributed { payer = charge }
                return isRefused ? [] : rows
            }
            guard let payload = V01.QueryRules.answer(rows)?.encoded() else { return nil }
            if limits.refuses(for: payer, { $0.answer(byteCount: payload.count, for: payer, at: now) }) { return nil }
            return server.replies.reply(.queryResponse, payload, to: sender, message, for: payer, expires: true)
        }
    }

    func answered(_ message: Decoded<V01AddressedCommand>, _ reply: Reply?) {
        node.counters.add(reply == nil ? .v01QueryUnanswered : .v01QueryAnswered)
    }
}

extension AcknowledgementLabel {
    init(_ error: V01.Acknowledgement.ErrorType?) {
        self =
            switch error {
            case nil: .success
            case .badToken: .badToken
            case .internalError, .unknown: .internalError
            }
    }
}
