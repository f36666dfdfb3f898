import StatusProtocol
import Core
import Waku
import WakuCrypto

/// The messages of the deployed protocol.
extension StatusPushClient: ClientDriver {
    // MARK: Writing

    func messages(registering registration: DeployedVersion.Registration, with server: PublicKey) -> [WakuMessage] {
        let envelope = MetadataEnvelope.encode(.registration, payload: registration.sealed, signedBy: identity).bytes
        let recipient: Recipient = registration.dialect == .published ? .partitioned(server) : .personal(server)
        return EnvelopeSealing.seal(envelope, to: recipient, wakuSigner: identity, at: .now())
    }

    func query(
        _ registrant: PublicKey, _ ticket: QueryTable.Ticket, by dialects: Set<PushServer.Dialect>
    ) -> OutgoingQuestion<Question> {
        let hash = KeyHash(of: registrant)
        let key = PrivateKey.generate()
        let envelope = MetadataEnvelope.encode(.query, payload: PushNotificationQuery(publicKeys: [hash]).encoded(), signedBy: key)
        let messages = dialects.sorted { $0.rawValue < $1.rawValue }.flatMap { dialect in
            let topic = dialect == .deployed ? StatusTopics.query(hash) : StatusTopics.publishedQuery(hash)
            return network.seal(envelope.bytes, toTopic: topic, wakuSigner: key)
        }
        return OutgoingQuestion(
            question: .query(ticket, key, messageID: envelope.id), messages: messages, answers: Self.answerTopic(key.publicKey))
    }

    func question(
        _ request: NotificationRequest, _ ticket: NotificationMachine.Ticket, to server: PublicKey
    ) -> OutgoingQuestion<Question>? {
        let key = PrivateKey.generate()
        let envelope = MetadataEnvelope.encode(.request, payload: PushNotificationRequest(request).encoded(), signedBy: key).bytes
        let messages = EnvelopeSealing.seal(envelope, to: .partitioned(server), wakuSigner: key, at: .now())
        return OutgoingQuestion(question: .request(ticket, key), messages: messages, answers: Self.answerTopic(key.publicKey))
    }

    func encoded(_ advertisement: ContactCodeAdvertisement) -> [UInt8] {
        SignedAdvertisement.encode(advertisement, from: installationID, bundles: bundles, signedBy: identity)
    }

    // MARK: Reading

    func takeAnswer(_ message: WakuMessage, to question: Question, _ id: Int) -> Bool {
        guard let envelope = envelope(in: message, for: question.key) else { return false }
        switch question {
        case .query(let ticket, _, let messageID):
            // Anyone who knows the registrant can encrypt to the query's key: the rows of strangers are not read.
            guard runner.read({ machine, _ in machine.queries.accepts(ticket, from: envelope.sender) }) else { break }
            guard let response = envelope.queryResponse, response.messageID == messageID else { break }
            // Other servers may answer as well.
            turn { $0.queryAnswered(ticket, by: envelope.sender, rows: response.info, at: $1) }
            if runner.read({ machine, _ in machine.queries.isComplete(ticket) }) { routes.end(id) }
        case .request(let ticket, _):
            guard let response = envelope.response else { break }
            let isAnswer = runner.read { machine, _ in
                machine.notifications.isAwaiting(ticket, from: envelope.sender, about: response.messageID)
            }
            turn { $0.requestAnswered(ticket, by: envelope.sender, response, at: $1) }
            if isAnswer { routes.end(id) }
        case .ask(let ask):
            ask.take(envelope)
            // One-shot registrations have the same key as the client's own one.
            return false
        }
        return true
    }

    func registrationResponse(in message: WakuMessage) -> (server: PublicKey, response: PushNotificationRegistrationResponse)? {
        guard let envelope = envelope(in: message, for: identity), let response = envelope.registrationResponse else { return nil }
        return (envelope.sender, response)
    }

    /// The envelope encrypted to one of the client's keys, if the same server signed both layers.
    private func envelope(in message: WakuMessage, for recipient: PrivateKey) -> MetadataEnvelope? {
        guard let opened = network.envelope(in: message, for: recipient),
            let envelope = try? MetadataEnvelope(parsing: opened.bytes, wakuSigner: opened.signer), envelope.sender == opened.signer
        else { return nil }
        return envelope
    }

    func advertisement(
        in bytes: [UInt8], of registrant: PublicKey, signer: PublicKey
    ) throws(EnvelopeError) -> (owner: PublicKey, event: (inout ClientMachine, Duration, Timestamp) -> Void) {
        let signed = try SignedAdvertisement(parsing: bytes, of: registrant)
        // Anyone can publish an advertisement of one device again under the id of another one.
        let installationID = signer == signed.owner ? signed.installationID : nil
        let rows = signed.advertisement.pushNotificationInfo
        return (signed.owner, { $0.advertised(by: signed.owner, from: installationID, rows: rows, age: $1, at: $2) })
    }
}

extension MetadataEnvelope {
    var registrationResponse: PushNotificationRegistrationResponse? {
        kind == .registrationResponse ? try? PushNotificationRegistrationResponse(parsing: payload) : nil
    }

    var queryResponse: PushNotificationQueryResponse? {
        kind == .queryResponse ? try? PushNotificationQueryResponse(parsing: payload) : nil
    }

    var response: PushNotificationResponse? {
        kind == .response ? try? PushNotificationResponse(parsing: payload) : nil
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
