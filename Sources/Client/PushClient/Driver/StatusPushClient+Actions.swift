import StatusProtocol
import Synchronization
import Core
import Waku
import WakuCrypto

extension StatusPushClient {
    func begin(_ action: ClientAction, in group: inout DiscardingTaskGroup) {
        switch action {
        case .report(let event): report(event)
        case .finished: break
        case .watch(let registrants):
            routes.withLock { routes in
                for registrant in registrants { routes.contactCodes[ClientNetwork.contactCodeTopic(registrant)] = registrant }
            }
            network.watchContactCodes(of: registrants)
        case .register(let server, let dialect, let requestID, let sealed):
            group.addTask { [self] in await register(server, dialect, requestID, sealed) }
        case .query(let ticket, let registrant, let dialects):
            group.addTask { [self] in await query(ticket, registrant, dialects) }
        case .request(let ticket, let server, let request):
            group.addTask { [self] in await send(request, ticket, to: server) }
        case .advertise(let advertisement):
            group.addTask { [self] in await advertise(advertisement) }
        case .lookUp(let registrants):
            group.addTask { [self] in await lookUp(registrants) }
        }
    }

    // MARK: Publishing

    /// - Returns: Whether a node accepted the messages; nil when the run was cancelled and the result is unknown, as after a kill.
    private func publish(_ messages: [WakuMessage], answersOn topic: ContentTopic?) async -> Bool? {
        do throws(RelayError) {
            try await network.publish(messages, answersOn: topic)
            return true
        } catch {
            guard !Task.isCancelled else { return nil }
            report(.relayFailed(reason: error.message))
            return false
        }
    }

    private func register(_ server: PublicKey, _ dialect: PushServer.Dialect?, _ requestID: [UInt8], _ sealed: [UInt8]) async {
        guard runner.read({ machine, _ in machine.registrations.isAwaitingPublication(requestID, to: server) }) else { return }
        let envelope = MetadataEnvelope.encode(.registration, payload: sealed, signedBy: identity).bytes
        let recipient: Recipient = dialect == .published ? .partitioned(server) : .personal(server)
        let messages = EnvelopeSealing.seal(envelope, to: recipient, wakuSigner: identity, at: .now())
        let topic = Self.answerTopic(identity.publicKey)
        network.watching.keep([topic])
        guard let isPublished = await publish(messages, answersOn: topic) else { return }
        turn { $0.registrationPublished(requestID, to: server, isPublished: isPublished, at: $1) }
    }

    private func query(_ ticket: QueryTable.Ticket, _ registrant: PublicKey, _ dialects: Set<PushServer.Dialect>) async {
        let hash = KeyHash(of: registrant)
        let key = PrivateKey.generate()
        let envelope = MetadataEnvelope.encode(.query, payload: PushNotificationQuery(publicKeys: [hash]).encoded(), signedBy: key)
        let answers = add(key, .query(ticket, messageID: envelope.id))
        let messages = dialects.sorted { $0.rawValue < $1.rawValue }.flatMap { dialect in
            let topic = dialect == .deployed ? StatusTopics.query(hash) : StatusTopics.publishedQuery(hash)
            return network.seal(envelope.bytes, toTopic: topic, wakuSigner: key)
        }
        guard let isPublished = await publish(messages, answersOn: answers) else { return }
        turn { $0.queryPublished(ticket, isPublished: isPublished, at: $1) }
    }

    private func send(_ request: PushNotificationRequest, _ ticket: NotificationMachine.Ticket, to server: PublicKey) async {
        let key = PrivateKey.generate()
        let answers = add(key, .request(ticket))
        let envelope = MetadataEnvelope.encode(.request, payload: request.encoded(), signedBy: key).bytes
        let messages = EnvelopeSealing.seal(envelope, to: .partitioned(server), wakuSigner: key, at: .now())
        guard let isPublished = await publish(messages, answersOn: answers) else { return }
        turn { $0.requestPublished(ticket, isPublished: isPublished, at: $1) }
    }

    /// - Returns: The answer topic.
    private func add(_ key: PrivateKey, _ kind: Routes.Question.Kind) -> ContentTopic {
        let topic = Self.answerTopic(key.publicKey)
        network.watching.retain(topic)
        let dropped = routes.withLock { $0.tickets.add(.init(key: key, kind: kind), on: topic, at: .now) }
        network.watching.release(dropped)
        return topic
    }

    /// Ends a question; further answers are not expected.
    private func end(_ ticket: Int) {
        let topic = routes.withLock { $0.tickets.remove(ticket) }
        network.watching.release(topic.map { [$0] } ?? [])
    }

    private func advertise(_ advertisement: ContactCodeAdvertisement) async {
        let topic = StatusTopics.contactCode(identity.publicKey)
        let data = SignedAdvertisement.encode(advertisement, from: installationID, bundles: bundles, signedBy: identity)
        guard let isPublished = await publish(network.seal(data, toTopic: topic, wakuSigner: identity), answersOn: nil) else { return }
        let count = advertisement.pushNotificationInfo.count
        turn { $0.advertisementPublished(rowCount: count, isPublished: isPublished, at: $1) }
    }

    // MARK: The store of the network

    private func lookUp(_ registrants: [PublicKey]) async {
        do throws(RelayError) {
            let isDone = try await network.lookUpContactCodes(of: registrants) { take($0) }
            turn { isDone ? $0.lookedUp(registrants, at: $1) : $0.lookUpImpossible(registrants, at: $1) }
        } catch {
            if Task.isCancelled { return }
            if error.code == .unavailable { return report(.relayFailed(reason: error.message)) }
            // No peer has a store: advertisements are known only from now on.
            turn { $0.lookUpImpossible(registrants, at: $1) }
        }
    }

    // MARK: Coming in

    /// Handles a message from the network. Messages on unknown topics cost only a dictionary look-up.
    func take(_ message: WakuMessage) {
        takeForAsks(message)
        let topic = message.contentTopic
        let (tickets, owner) = routes.withLock { ($0.tickets.tickets(on: topic), $0.contactCodes[topic]) }
        if let owner { takeAdvertisement(message, of: owner) }
        for ticket in tickets {
            guard let envelope = envelope(in: message, for: ticket.question.key) else { continue }
            return takeAnswer(envelope, to: ticket.question.kind, ticket.id)
        }
        guard topic == Self.answerTopic(identity.publicKey), let envelope = envelope(in: message, for: identity),
            envelope.kind == .registrationResponse, let response = try? PushNotificationRegistrationResponse(parsing: envelope.payload)
        else { return }
        turn { $0.registrationAnswered(by: envelope.sender, response, at: $1) }
    }

    private func takeAnswer(_ envelope: MetadataEnvelope, to kind: Routes.Question.Kind, _ ticket: Int) {
        switch kind {
        case .query(let number, let messageID):
            guard envelope.kind == .queryResponse, let response = try? PushNotificationQueryResponse(parsing: envelope.payload),
                response.messageID == messageID
            else { return }
            // Other servers may answer as well.
            turn { $0.queryAnswered(number, by: envelope.sender, rows: response.info, at: $1) }
            if runner.read({ machine, _ in machine.queries.isComplete(number) }) { end(ticket) }
        case .request(let number):
            guard envelope.kind == .response, let response = try? PushNotificationResponse(parsing: envelope.payload) else { return }
            let isAnswer = runner.read { machine, _ in
                machine.notifications.isAwaiting(number, from: envelope.sender, about: response.messageID)
            }
            turn { $0.requestAnswered(number, by: envelope.sender, response, at: $1) }
            if isAnswer { end(ticket) }
        }
    }

    /// Any node may have relayed the advertisement: only its owner's signature counts.
    private func takeAdvertisement(_ message: WakuMessage, of owner: PublicKey) {
        guard let data = network.contactCode(in: message, of: owner) else { return }
        let signed: SignedAdvertisement
        do throws(EnvelopeError) {
            signed = try SignedAdvertisement(parsing: data)
        } catch .otherKind {
            return
        } catch {
            return turn { $0.advertisementRejected(of: owner, .unreadable, at: $1) }
        }
        guard signed.owner == owner else { return turn { $0.advertisementRejected(of: owner, .foreignSignature, at: $1) } }
        let age = Timestamp.now().since(message.timestamp)
        turn {
            $0.advertised(
                by: owner, from: signed.installationID, rows: signed.advertisement.pushNotificationInfo, age: age, at: $1)
        }
    }
}
