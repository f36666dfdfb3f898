import StatusProtocol
import Core
import Waku
import WakuCrypto

extension StatusPushClient: ClientDriver {
    // MARK: Publishing

    func register(_ registration: DeployedVersion.Registration, with server: PublicKey) async {
        let id = registration.requestID
        guard runner.read({ machine, _ in machine.registrations.isAwaitingPublication(id, to: server) }) else { return }
        let envelope = MetadataEnvelope.encode(.registration, payload: registration.sealed, signedBy: identity).bytes
        let recipient: Recipient = registration.dialect == .published ? .partitioned(server) : .personal(server)
        let messages = EnvelopeSealing.seal(envelope, to: recipient, wakuSigner: identity, at: .now())
        routes.keep(ownTopic)
        guard let isPublished = await publish(messages, answersOn: ownTopic) else { return }
        turn { $0.registrationPublished(id, to: server, isPublished: isPublished, at: $1) }
    }

    func query(_ registrant: PublicKey, _ ticket: QueryTable.Ticket, by dialects: Set<PushServer.Dialect>) async {
        let hash = KeyHash(of: registrant)
        let key = PrivateKey.generate()
        let envelope = MetadataEnvelope.encode(.query, payload: PushNotificationQuery(publicKeys: [hash]).encoded(), signedBy: key)
        let answers = Self.answerTopic(key.publicKey)
        routes.add(.query(ticket, key, messageID: envelope.id), on: answers)
        let messages = dialects.sorted { $0.rawValue < $1.rawValue }.flatMap { dialect in
            let topic = dialect == .deployed ? StatusTopics.query(hash) : StatusTopics.publishedQuery(hash)
            return network.seal(envelope.bytes, toTopic: topic, wakuSigner: key)
        }
        guard let isPublished = await publish(messages, answersOn: answers) else { return }
        turn { $0.queryPublished(ticket, isPublished: isPublished, at: $1) }
    }

    func send(_ request: NotificationRequest, _ ticket: NotificationMachine.Ticket, to server: PublicKey) async {
        guard isAwaitingPublication(ticket) else { return }
        let key = PrivateKey.generate()
        let answers = Self.answerTopic(key.publicKey)
        routes.add(.request(ticket, key), on: answers)
        let envelope = MetadataEnvelope.encode(.request, payload: PushNotificationRequest(request).encoded(), signedBy: key).bytes
        let messages = EnvelopeSealing.seal(envelope, to: .partitioned(server), wakuSigner: key, at: .now())
        await publish(messages, of: ticket, answersOn: answers)
    }

    func advertise(_ advertisement: ContactCodeAdvertisement) async {
        let data = SignedAdvertisement.encode(advertisement, from: installationID, bundles: bundles, signedBy: identity)
        await advertise(data, rowCount: advertisement.pushNotificationInfo.count)
    }

    // MARK: Incoming messages

    func take(_ message: WakuMessage) {
        let topic = message.contentTopic
        let uses = routes[topic]
        for owner in uses.registrants { takeAdvertisement(message, of: owner) }
        for (id, question) in uses.questions {
            guard let envelope = envelope(in: message, for: question.key) else { continue }
            takeAnswer(envelope, to: question, id)
            // One-shot registrations have the same key as the client's own one.
            guard case .ask = question else { return }
        }
        guard topic == ownTopic, let envelope = envelope(in: message, for: identity),
            envelope.kind == .registrationResponse, let response = try? PushNotificationRegistrationResponse(parsing: envelope.payload)
        else { return }
        turn { $0.registrationAnswered(by: envelope.sender, response, at: $1) }
    }

    /// The envelope encrypted to one of the client's keys, if the same server signed both layers.
    private func envelope(in message: WakuMessage, for recipient: PrivateKey) -> MetadataEnvelope? {
        guard let opened = network.envelope(in: message, for: recipient),
            let envelope = try? MetadataEnvelope(parsing: opened.bytes, wakuSigner: opened.signer), envelope.sender == opened.signer
        else { return nil }
        return envelope
    }

    private func takeAnswer(_ envelope: MetadataEnvelope, to question: Question, _ ticket: Int) {
        switch question {
        case .query(let number, _, let messageID):
            guard envelope.kind == .queryResponse, let response = try? PushNotificationQueryResponse(parsing: envelope.payload),
                response.messageID == messageID
            else { return }
            // Other servers may answer as well.
            turn { $0.queryAnswered(number, by: envelope.sender, rows: response.info, at: $1) }
            if runner.read({ machine, _ in machine.queries.isComplete(number) }) { routes.end(ticket) }
        case .request(let number, _):
            guard envelope.kind == .response, let response = try? PushNotificationResponse(parsing: envelope.payload) else { return }
            let isAnswer = runner.read { machine, _ in
                machine.notifications.isAwaiting(number, from: envelope.sender, about: response.messageID)
            }
            turn { $0.requestAnswered(number, by: envelope.sender, response, at: $1) }
            if isAnswer { routes.end(ticket) }
        case .ask(let ask): ask.take(envelope)
        }
    }

    /// Any node may have relayed the advertisement: only its owner's signature counts.
    @discardableResult
    func takeAdvertisement(_ message: WakuMessage, of owner: PublicKey) -> Bool {
        guard let data = network.contactCode(in: message, of: owner) else { return false }
        let signed: SignedAdvertisement
        do throws(EnvelopeError) {
            signed = try SignedAdvertisement(parsing: data.bytes)
        } catch .otherKind {
            return false
        } catch {
            turn { $0.advertisementRejected(of: owner, .unreadable, at: $1) }
            return false
        }
        guard signed.owner == owner else {
            turn { $0.advertisementRejected(of: owner, .foreignSignature, at: $1) }
            return false
        }
        // Anyone can publish an advertisement of one device again under the id of another one.
        let installationID = data.signer == owner ? signed.installationID : nil
        let age = Timestamp.now().since(message.timestamp)
        turn { $0.advertised(by: owner, from: installationID, rows: signed.advertisement.pushNotificationInfo, age: age, at: $1) }
        return true
    }
}

extension PushNotificationRequest {
    init(_ request: NotificationRequest) {
        let entries = request.entries.map { entry in
            PushNotification(
                accessToken: entry.token, chatID: request.chatHash, publicKey: KeyHash(of: entry.device.registrant).bytes,
                installationID: entry.device.installationID, message: request.content, kind: NotificationKind(rawValue: request.kind),
                author: request.authorHash)
        }
        self.init(requests: entries, messageID: request.messageID)
    }
}
