import StatusProtocol
import Synchronization
import Waku
import WakuCrypto

extension StatusPushClient {
    func begin(_ action: ClientAction, in group: inout DiscardingTaskGroup) {
        switch action {
        case .report(let event): report(event)
        case .finished: break
        case .watch(let registrants):
            core.withLock { $0.listen(toContactCodesOf: registrants) }
            relay.watch(registrants.map { ContentTopic(TopicTag(of: StatusTopics.contactCode($0))) })
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

    /// Publishes once the subscription to the answer's topic was confirmed.
    ///
    /// - Returns: Whether a node took it.
    private func publish(_ messages: [WakuMessage], answersTo key: PublicKey?) async -> Bool {
        do throws(RelayError) {
            let topics = key.map { [Self.answerTopic($0)] } ?? []
            try await relay.waitUntilWatching(topics)
            for message in messages { try await relay.publish(message, on: pubsubTopic) }
            return true
        } catch {
            if !Task.isCancelled { report(.relayFailed(reason: error.message)) }
            return false
        }
    }

    private func register(_ server: PublicKey, _ dialect: PushServer.Dialect?, _ requestID: [UInt8], _ sealed: [UInt8]) async {
        guard core.withLock({ $0.machine.registrations.isAwaitingPublication(requestID, to: server) }) else { return }
        let envelope = MetadataEnvelope.encode(.registration, payload: sealed, signedBy: identity).bytes
        let recipient: Recipient = dialect == .published ? .partitioned(server) : .personal(server)
        let messages = EnvelopeSealing.seal(envelope, to: recipient, wakuSigner: identity, at: .now())
        let isPublished = await publish(messages, answersTo: identity.publicKey)
        guard !Task.isCancelled else { return }
        turn { $0.registrationPublished(requestID, to: server, isPublished: isPublished, at: $1) }
    }

    private func query(_ ticket: QueryTable.Ticket, _ registrant: PublicKey, _ dialects: Set<PushServer.Dialect>) async {
        let hash = KeyHash(of: registrant)
        let key = PrivateKey.generate()
        let envelope = MetadataEnvelope.encode(.query, payload: PushNotificationQuery(publicKeys: [hash]).encoded(), signedBy: key)
        add(key, .query(ticket, messageID: envelope.id))
        let messages = dialects.sorted { $0.rawValue < $1.rawValue }.flatMap { dialect in
            let topic = dialect == .deployed ? StatusTopics.query(hash) : StatusTopics.publishedQuery(hash)
            return EnvelopeSealing.seal(envelope.bytes, to: .topic(topic, topicKeys.key(of: topic)), wakuSigner: key, at: .now())
        }
        let isPublished = await publish(messages, answersTo: key.publicKey)
        guard !Task.isCancelled else { return }
        turn { $0.queryPublished(ticket, isPublished: isPublished, at: $1) }
    }

    private func send(_ request: PushNotificationRequest, _ ticket: NotificationMachine.Ticket, to server: PublicKey) async {
        let key = PrivateKey.generate()
        add(key, .request(ticket))
        let envelope = MetadataEnvelope.encode(.request, payload: request.encoded(), signedBy: key).bytes
        let messages = EnvelopeSealing.seal(envelope, to: .partitioned(server), wakuSigner: key, at: .now())
        let isPublished = await publish(messages, answersTo: key.publicKey)
        guard !Task.isCancelled else { return }
        turn { $0.requestPublished(ticket, isPublished: isPublished, at: $1) }
    }

    private func add(_ key: PrivateKey, _ kind: ClientCore.Ticket.Kind) {
        let topic = TopicTag(of: StatusTopics.partitioned(key.publicKey))
        core.withLock { $0.add(ClientCore.Ticket(key: key, topic: topic, kind: kind)) }
    }

    private func advertise(_ advertisement: ContactCodeAdvertisement) async {
        let topic = StatusTopics.contactCode(identity.publicKey)
        let data = SignedAdvertisement.encode(advertisement, from: installationID, bundles: bundles, signedBy: identity)
        let messages = EnvelopeSealing.seal(data, to: .topic(topic, topicKeys.key(of: topic)), wakuSigner: identity, at: .now())
        let isPublished = await publish(messages, answersTo: nil)
        guard !Task.isCancelled else { return }
        let count = advertisement.pushNotificationInfo.count
        turn { $0.advertisementPublished(rowCount: count, isPublished: isPublished, at: $1) }
    }

    // MARK: The store of the network

    /// How far back: advertisements of devices that are in use are repeated every day.
    private static let lookBack = Duration.seconds(30 * 24 * 3600)
    private static let pageLimit = 20

    /// A registrant whose topic could not be looked up is looked up at the next start.
    private func lookUp(_ registrants: [PublicKey]) async {
        guard let relay = relay as? any StoreReadingRelay else { return turn { $0.lookedUp([], at: $1) } }
        let topics = registrants.map { ContentTopic(TopicTag(of: StatusTopics.contactCode($0))) }
        do throws(RelayError) {
            try await relay.waitUntilWatching(topics)
            for var query in StoreQuery.queries(pubsubTopics: [pubsubTopic], contentTopics: topics, from: .now() - Self.lookBack) {
                for _ in 0..<Self.pageLimit {
                    let page = try await relay.storePage(query)
                    for received in page.messages { take(received.message) }
                    guard let cursor = page.cursor, cursor != query.cursor else { break }
                    query.cursor = cursor
                }
            }
            turn { $0.lookedUp(registrants, at: $1) }
        } catch {
            if !Task.isCancelled, error.code == .unavailable { report(.relayFailed(reason: error.message)) }
        }
    }

    // MARK: Coming in

    /// A message from the network. Those on topics of no concern cost a look-up.
    func take(_ message: WakuMessage) {
        guard let tag = message.contentTopic.tag else { return }
        takeForAsks(message)
        let (tickets, owner) = core.withLock { core in (core.tickets.filter { $0.topic == tag }, core.contactCodes[tag]) }
        if let owner { takeAdvertisement(message, of: owner) }
        for ticket in tickets {
            guard let envelope = envelope(in: message, for: ticket.key) else { continue }
            return takeAnswer(envelope, to: ticket)
        }
        guard tag == Self.answerTopic(identity.publicKey).tag, let envelope = envelope(in: message, for: identity),
            envelope.kind == .registrationResponse, let response = try? PushNotificationRegistrationResponse(parsing: envelope.payload)
        else { return }
        turn { $0.registrationAnswered(by: envelope.sender, response, at: $1) }
    }

    private func takeAnswer(_ envelope: MetadataEnvelope, to ticket: ClientCore.Ticket) {
        switch ticket.kind {
        case .query(let number, let messageID):
            guard envelope.kind == .queryResponse, let response = try? PushNotificationQueryResponse(parsing: envelope.payload),
                response.messageID == messageID
            else { return }
            turn { $0.queryAnswered(number, by: envelope.sender, rows: response.info, at: $1) }
        case .request(let number):
            guard envelope.kind == .response, let response = try? PushNotificationResponse(parsing: envelope.payload) else { return }
            turn { $0.requestAnswered(number, by: envelope.sender, response, at: $1) }
        }
    }

    /// Whoever wrapped it: only the owner's signature on the advertisement counts.
    private func takeAdvertisement(_ message: WakuMessage, of owner: PublicKey) {
        let key = topicKeys.key(of: StatusTopics.contactCode(owner))
        guard let payload = try? EnvelopeSealing.open(message, identity: nil, topicKeys: [key]) else { return }
        let signed: SignedAdvertisement
        do throws(EnvelopeError) {
            signed = try SignedAdvertisement(parsing: payload.data)
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
