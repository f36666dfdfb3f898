import StatusProtocol
import Core
import Waku
import WakuCrypto

/// The messages of version 0.1.
extension StatusV01PushClient: ClientDriver {
    // MARK: Writing

    private static func seal(
        _ type: V01.MessageType, _ payload: [UInt8], to server: PublicKey, signedBy key: PrivateKey
    ) -> [WakuMessage] {
        let envelope = V01.Envelope.encode(type, payload: payload, signedBy: key)
        return EnvelopeSealing.seal(envelope, to: .key(server, topic: V01.serverTopic(server)), wakuSigner: key, at: .now())
    }

    func messages(registering register: V01.Register, with server: PublicKey) -> [WakuMessage] {
        Self.seal(.register, register.encoded(), to: server, signedBy: identity)
    }

    func query(_ registrant: PublicKey, _ ticket: QueryTable.Ticket, by servers: [PublicKey]) -> OutgoingQuestion<Question> {
        let key = PrivateKey.generate()
        let query = V01.Query([V01.KeyHash(of: registrant)]).encoded()
        return OutgoingQuestion(
            question: .query(ticket, key), messages: servers.flatMap { Self.seal(.query, query, to: $0, signedBy: key) },
            answers: StatusPushClient.answerTopic(key.publicKey))
    }

    func question(
        _ request: NotificationRequest, _ ticket: NotificationMachine.Ticket, to server: PublicKey
    ) -> OutgoingQuestion<Question>? {
        // A key has 32 bytes.
        guard let ackKey = V01.AckKey(randomBytes(SymmetricKey.byteCount)) else { return nil }
        let encoded = V01.Request(request, ackKey: ackKey).encoded()
        return OutgoingQuestion(
            question: .request(ticket, ackKey), messages: Self.seal(.request, encoded, to: server, signedBy: .generate()),
            answers: ackKey.topic)
    }

    func encoded(_ advertisement: V01.ContactCodeAdvertisement) -> [UInt8] {
        V01.Envelope.encode(.contactCodeAdvertisement, payload: advertisement.encoded(), signedBy: identity)
    }

    // MARK: Reading

    func takeAnswer(_ message: WakuMessage, to question: Question, _ id: Int) -> Bool {
        switch question {
        case .query(let ticket, let key):
            guard let envelope = envelope(in: message, for: key) else { return false }
            // Anyone can encrypt to the query's key: the rows of strangers are not read.
            guard runner.read({ machine, _ in machine.queries.accepts(ticket, from: envelope.signer) }) else { return true }
            guard envelope.type == .queryResponse, let response = try? V01.QueryResponse(parsing: envelope.payload) else { return true }
            turn { $0.queryAnswered(ticket, by: envelope.signer, rows: response.info, at: $1) }
            // Other servers may answer as well.
            if runner.read({ machine, _ in machine.queries.isComplete(ticket) }) { routes.end(id) }
        case .request(let ticket, let ackKey):
            guard let opened = try? EnvelopeSealing.open(message, identity: nil, topicKeys: [ackKey.key]) else { return false }
            guard let envelope = try? V01.Envelope(parsing: opened.data, wakuSigner: opened.signer), envelope.sender == opened.signer,
                envelope.type == .acknowledgement, let acknowledgement = try? V01.Acknowledgement(parsing: envelope.payload),
                acknowledgement.id == ackKey.named
            else { return true }
            let isAwaited = runner.read { machine, _ in machine.notifications.requests[ticket]?.server == opened.signer }
            turn { $0.requestAcknowledged(ticket, by: opened.signer, acknowledgement.error, at: $1) }
            if isAwaited { routes.end(id) }
        }
        return true
    }

    func registrationResponse(in message: WakuMessage) -> (server: PublicKey, response: V01.RegistrationResponse)? {
        guard let envelope = envelope(in: message, for: identity), envelope.type == .registrationResponse,
            let response = try? V01.RegistrationResponse(parsing: envelope.payload)
        else { return nil }
        return (envelope.signer, response)
    }

    /// The envelope encrypted to one of the client's keys, if the same server signed both layers.
    private func envelope(in message: WakuMessage, for key: PrivateKey) -> (type: V01.MessageType, signer: PublicKey, payload: [UInt8])? {
        guard let opened = network.envelope(in: message, for: key),
            let envelope = try? V01.Envelope(parsing: opened.bytes, wakuSigner: opened.signer), envelope.sender == opened.signer
        else { return nil }
        return (envelope.type, opened.signer, envelope.payload)
    }

    func advertisement(
        in bytes: [UInt8], of registrant: PublicKey, signer: PublicKey
    ) throws(EnvelopeError) -> (owner: PublicKey, event: (inout V01Machine, Duration, Timestamp) -> Void) {
        let signed = try V01.SignedAdvertisement(parsing: bytes, of: registrant)
        return (signed.owner, { $0.advertised(by: signed.owner, rows: signed.advertisement.info, age: $1, at: $2) })
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
