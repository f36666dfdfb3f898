import StatusProtocol
import Core
import Waku
import WakuCrypto

extension StatusV01PushClient: ClientDriver {
    // MARK: Publishing

    private static func seal(
        _ type: V01.MessageType, _ payload: [UInt8], to server: PublicKey, signedBy key: PrivateKey
    ) -> [WakuMessage] {
        let envelope = V01.Envelope.encode(type, payload: payload, signedBy: key)
        return EnvelopeSealing.seal(envelope, to: .key(server, topic: V01.serverTopic(server)), wakuSigner: key, at: .now())
    }

    func register(_ register: V01.Register, with server: PublicKey) async {
        guard runner.read({ machine, _ in machine.registrations.isAwaitingPublication(register, to: server) }) else { return }
        routes.keep(ownTopic)
        let messages = Self.seal(.register, register.encoded(), to: server, signedBy: identity)
        guard let isPublished = await publish(messages, answersOn: ownTopic) else { return }
        turn { $0.registerPublished(register, to: server, isPublished: isPublished, at: $1) }
    }

    func query(_ registrant: PublicKey, _ ticket: QueryTable.Ticket, by servers: [PublicKey]) async {
        let key = PrivateKey.generate()
        let query = V01.Query([V01.KeyHash(of: registrant)]).encoded()
        let messages = servers.flatMap { Self.seal(.query, query, to: $0, signedBy: key) }
        let answers = StatusPushClient.answerTopic(key.publicKey)
        routes.add(.query(ticket, key), on: answers)
        guard let isPublished = await publish(messages, answersOn: answers) else { return }
        turn { $0.queryPublished(ticket, isPublished: isPublished, at: $1) }
    }

    func send(_ request: NotificationRequest, _ ticket: NotificationMachine.Ticket, to server: PublicKey) async {
        // A key has 32 bytes.
        guard isAwaitingPublication(ticket), let ackKey = V01.AckKey(randomBytes(SymmetricKey.byteCount)) else { return }
        let encoded = V01.Request(request, ackKey: ackKey).encoded()
        routes.add(.request(ticket, ackKey), on: ackKey.topic)
        let messages = Self.seal(.request, encoded, to: server, signedBy: .generate())
        await publish(messages, of: ticket, answersOn: ackKey.topic)
    }

    func advertise(_ advertisement: V01.ContactCodeAdvertisement) async {
        let envelope = V01.Envelope.encode(.contactCodeAdvertisement, payload: advertisement.encoded(), signedBy: identity)
        await advertise(envelope, rowCount: advertisement.info.count)
    }

    // MARK: Coming in

    func take(_ message: WakuMessage) {
        let topic = message.contentTopic
        let uses = routes[topic]
        for owner in uses.registrants { takeAdvertisement(message, of: owner) }
        for (id, question) in uses.questions where takeAnswer(message, to: question, id) { return }
        guard topic == ownTopic, let envelope = envelope(in: message, for: identity),
            envelope.type == .registrationResponse, let response = try? V01.RegistrationResponse(parsing: envelope.payload)
        else { return }
        turn { $0.registerAnswered(by: envelope.signer, response, at: $1) }
    }

    /// - Returns: Whether the message was an answer to this question.
    private func takeAnswer(_ message: WakuMessage, to question: Question, _ ticket: Int) -> Bool {
        switch question {
        case .query(let number, let key):
            guard let envelope = envelope(in: message, for: key) else { return false }
            guard envelope.type == .queryResponse, let response = try? V01.QueryResponse(parsing: envelope.payload) else { return true }
            turn { $0.queryAnswered(number, by: envelope.signer, rows: response.info, at: $1) }
            // Other servers may answer as well.
            if runner.read({ machine, _ in machine.queries.isComplete(number) }) { routes.end(ticket) }
        case .request(let number, let ackKey):
            guard let opened = try? EnvelopeSealing.open(message, identity: nil, topicKeys: [ackKey.key]) else { return false }
            guard let envelope = try? V01.Envelope(parsing: opened.data, wakuSigner: opened.signer), envelope.sender == opened.signer,
                envelope.type == .acknowledgement, let acknowledgement = try? V01.Acknowledgement(parsing: envelope.payload),
                acknowledgement.id == ackKey.named
            else { return true }
            let isAwaited = runner.read { machine, _ in machine.notifications.requests[number]?.server == opened.signer }
            turn { $0.requestAcknowledged(number, by: opened.signer, acknowledgement.error, at: $1) }
            if isAwaited { routes.end(ticket) }
        }
        return true
    }

    /// The envelope encrypted to one of the client's keys, if the same server signed both layers.
    private func envelope(in message: WakuMessage, for key: PrivateKey) -> (type: V01.MessageType, signer: PublicKey, payload: [UInt8])? {
        guard let opened = network.envelope(in: message, for: key),
            let envelope = try? V01.Envelope(parsing: opened.bytes, wakuSigner: opened.signer), envelope.sender == opened.signer
        else { return nil }
        return (envelope.type, opened.signer, envelope.payload)
    }

    /// Only the owner's signature on the advertisement counts. The topic also carries other messages, such as those of the deployed protocol.
    @discardableResult
    func takeAdvertisement(_ message: WakuMessage, of owner: PublicKey) -> Bool {
        guard let data = network.contactCode(in: message, of: owner) else { return false }
        let signed: V01.SignedAdvertisement
        do throws(EnvelopeError) {
            signed = try V01.SignedAdvertisement(parsing: data.bytes)
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
        let age = Timestamp.now().since(message.timestamp)
        turn { $0.advertised(by: owner, rows: signed.advertisement.info, age: age, at: $1) }
        return true
    }
}

extension V01.Request {
    /// Makes an entry for each token, which stands for all devices of its record. The message id is sent as text in hexadecimal digits.
    init(_ request: NotificationRequest, ackKey: V01.AckKey) {
        var tokens: [AccessToken] = []
        for entry in request.entries where !tokens.contains(entry.token) { tokens.append(entry.token) }
        self.init(
            requests: tokens.map { V01.PushNotification(accessToken: $0, chatID: request.chatHash) }, message: request.content,
            messageID: Array(hexString(request.messageID).utf8), ackKey: ackKey.named)
    }
}
