import StatusRules
package import Core
package import StatusProtocol
package import Waku
package import WakuCrypto

/// A node without sockets, threads or files: the rules' decisions on single messages, with dictionaries for a store and a gorush
/// that accepts or fails.
package struct PlainNode: Sendable {
    package struct Answer: Sendable {
        package let kind: MessageKind
        package let recipient: PublicKey
        package let contentTopic: ContentTopic
        package let payload: [UInt8]
    }

    package struct Notified: Hashable, Sendable {
        package let token: DeviceToken
        package let platform: Platform?

        package init(token: DeviceToken, platform: Platform?) {
            self.token = token
            self.platform = platform
        }
    }

    private let identity: PrivateKey
    private let ownTopics: [TopicTag]
    private let registrationRules: RegistrationRules
    private let queryRules: QueryRules
    private let requestRules = RequestRules(maximumAge: .seconds(300))

    package private(set) var stored: [RegistrationKey: StoredState] = [:]
    /// All registrations and tombstones.
    private var topicKeys: [TopicTag: (owner: KeyHash, key: SymmetricKey)] = [:]
    private var assembler = SegmentAssembler()
    private var accepted: Set<DeliveryID> = []
    private var outbox: [(id: DeliveryID, notified: Notified)] = []
    /// Reports of requests by envelope id: a repeated request gets the same answer.
    private var answered: [[UInt8]: [PushNotificationReport]] = [:]

    package private(set) var notified: [Notified] = []
    package var gorushAccepts = true {
        didSet { if gorushAccepts { emptyOutbox() } }
    }

    package init(identity: PrivateKey) {
        self.identity = identity
        ownTopics = [StatusTopics.personal(identity.publicKey), StatusTopics.partitioned(identity.publicKey)].map(TopicTag.init)
        registrationRules = RegistrationRules(identity: identity)
        queryRules = QueryRules(server: identity.publicKey)
    }

    package mutating func receive(_ message: WakuMessage) throws -> Answer? {
        guard let plain = open(message), let frame = try? PayloadFrame(parsing: plain), let signer = try? frame.signer() else { return nil }
        var bytes = frame.data
        if let segment = SegmentMessage(parsing: bytes) {
            guard let whole = assembler.add(segment, from: signer, at: message.timestamp)?.bytes else { return nil }
            bytes = whole
        }
        guard let envelope = try? MetadataEnvelope(parsing: bytes, wakuSigner: signer) else { return nil }
        switch envelope.kind {
        case .registration: return register(envelope, at: message.timestamp)
        case .query: return answerQuery(envelope)
        case .request: return notify(envelope, at: message.timestamp)
        case .registrationResponse, .queryResponse, .response: return nil
        }
    }

    private func open(_ message: WakuMessage) -> [UInt8]? {
        guard let tag = message.contentTopic.tag else { return nil }
        if ownTopics.contains(tag) { return try? ECIES.open(message.payload, with: identity) }
        guard let (owner, key) = topicKeys[tag], !registrations(of: owner).isEmpty else { return nil }
        return try? AESGCM.open(message.payload, key: key, layout: .nonceLast)
    }

    private func answer(_ kind: MessageKind, _ payload: [UInt8], to envelope: MetadataEnvelope) -> Answer {
        let topic = ContentTopic(TopicTag(of: StatusTopics.partitioned(envelope.sender)))
        return Answer(kind: kind, recipient: envelope.sender, contentTopic: topic, payload: payload)
    }

    private mutating func register(_ envelope: MetadataEnvelope, at now: Timestamp) -> Answer? {
        guard let claim = registrationRules.claim(in: envelope) else { return nil }
        var error: PushNotificationRegistrationResponse.ErrorType?
        switch registrationRules.decide(
            claim, storedVersion: claim.key.flatMap { stored[$0]?.version }, registered: { claim.key.flatMap { stored[$0]?.registration } })
        {
        case .store(let key, let registration, _):
            stored[key] = .registered(StoredRegistration(key: key, registration: registration, storedAt: now))
            for topic in [StatusTopics.query(key.keyHash), StatusTopics.publishedQuery(key.keyHash)] {
                let tag = TopicTag(of: topic)
                topicKeys[tag] = topicKeys[tag] ?? (key.keyHash, KeyDerivation.topicKey(topic))
            }
        case .unregister(let key, let version): stored[key] = .tombstone(version: version)
        case .keep: break
        case .refuse(let reason): error = reason
        }
        let response = PushNotificationRegistrationResponse(error: error, requestID: claim.requestID)
        return answer(.registrationResponse, response.encoded(), to: envelope)
    }

    private func answerQuery(_ envelope: MetadataEnvelope) -> Answer? {
        guard let query = try? PushNotificationQuery(parsing: envelope.payload) else { return nil }
        let rows = queryRules.registrants(in: query).flatMap(registrations)
        return queryRules.answer(rows, messageID: envelope.id).map { answer(.queryResponse, $0.encoded(), to: envelope) }
    }

    private func registrations(of registrant: KeyHash) -> [StoredRegistration] {
        stored.values.compactMap { state in
            guard case .registered(let stored) = state, stored.key.keyHash == registrant else { return nil }
            return stored
        }
    }

    private mutating func notify(_ envelope: MetadataEnvelope, at now: Timestamp) -> Answer? {
        guard let request = try? PushNotificationRequest(parsing: envelope.payload), !request.messageID.isEmpty,
            requestRules.expiry(of: now, at: now) != nil
        else { return nil }
        let reports = answered[envelope.id] ?? report(request)
        if !reports.contains(where: { $0.error == .internalError }) { answered[envelope.id] = reports }
        let response = PushNotificationResponse(messageID: request.messageID, reports: reports)
        return answer(.response, response.encoded(), to: envelope)
    }

    private mutating func report(_ request: PushNotificationRequest) -> [PushNotificationReport] {
        let outcomes = requestRules.decide(request) { key in
            guard case .registered(let stored) = stored[key] else { return nil }
            return stored
        } delivery: { id in
            accepted.contains(id) ? .accepted : outbox.contains { $0.id == id } ? .waiting : nil
        }
        for case .deliver(let id, _, let stored) in outcomes {
            outbox.append((id, Notified(token: stored.registration.deviceToken, platform: stored.registration.platform)))
        }
        if gorushAccepts { emptyOutbox() }
        return zip(request.requests, outcomes).map { entry, outcome in
            let error: PushNotificationReport.ErrorType? =
                switch outcome {
                case .report(let error): error
                case .deliver(let id, _, _), .await(let id): accepted.contains(id) ? nil : .internalError
                }
            return PushNotificationReport(error: error, publicKey: entry.publicKey, installationID: entry.installationID)
        }
    }

    private mutating func emptyOutbox() {
        for entry in outbox {
            accepted.insert(entry.id)
            notified.append(entry.notified)
        }
        outbox.removeAll()
    }
}
