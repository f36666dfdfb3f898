import Core
import NodeAssembly
import StatusProtocol
import Storage
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import StatusServer

/// Random messages of a few registrants and senders, by seed: valid and invalid, new and stale, single and repeated.
struct RandomTraffic: TestedTraffic {
    private static let devicesOfClient = 2

    private let server: PublicKey
    private var plain: PlainNode
    var generator: SeededGenerator
    private let clients: [TestClient]
    private let askers: [PrivateKey]
    private let topicKeys: [[SymmetricKey]]
    private let messageIDs: [[UInt8]]
    private var sentRequests: [[UInt8]] = []

    init(to identity: PrivateKey, seed: UInt64, registrants: Int) {
        let server = identity.publicKey
        self.server = server
        plain = PlainNode(identity: identity)
        generator = SeededGenerator(seed: seed)
        clients = (0..<registrants).flatMap { index in
            let identity = PrivateKey.generate()
            return (0..<Self.devicesOfClient).map { device in
                TestClient(of: server, identity: identity, installationID: InstallationID("device-\(index)-\(device)"))
            }
        }
        askers = (0..<8).map { _ in .generate() }
        // A registrant's devices have the same topics, and a key takes 20 ms.
        topicKeys = stride(from: 0, to: clients.count, by: Self.devicesOfClient).flatMap { [clients] index in
            Array(repeating: Self.topics(clients[index]).map(KeyDerivation.topicKey), count: Self.devicesOfClient)
        }
        messageIDs = (0..<40).map { _ in randomBytes(32) }
    }

    var recipients: [PrivateKey] { clients.map(\.identity) + askers }

    private static func topics(_ client: TestClient) -> [String] {
        [StatusTopics.query(client.keyHash), StatusTopics.publishedQuery(client.keyHash)]
    }

    mutating func round() -> [[WakuMessage]] {
        [mixed(100) { $0.registration() }, mixed(80) { $0.request() }, queries(40)]
    }

    private mutating func queries(_ count: Int) -> [WakuMessage] {
        (0..<count).map { _ in
            let index = clients.indices.randomElement(using: &generator) ?? 0
            let form = Int.random(in: 0..<2, using: &generator)
            let asked = [clients[index].keyHash] + (Bool.random(using: &generator) ? [clients[0].keyHash] : [])
            let asker = asker()
            let envelope = MetadataEnvelope.encode(.query, payload: PushNotificationQuery(publicKeys: asked).encoded(), signedBy: asker)
            let frame = PayloadFrame.encode(envelope.bytes, signedBy: asker)
            return message(
                AESGCM.seal(frame, key: topicKeys[index][form], layout: .nonceLast), topic: Self.topics(clients[index])[form])
        }
    }

    private mutating func asker() -> PrivateKey { askers.randomElement(using: &generator) ?? askers[0] }

    private mutating func registration() -> WakuMessage {
        let client = clients.randomElement(using: &generator) ?? clients[0]
        let version = UInt64.random(in: 0...8, using: &generator)
        let flaw = Int.random(in: 0..<12, using: &generator)
        let number = UInt64.random(in: 0..<1000, using: &generator)
        let registration =
            flaw == 0
            ? client.unregistration(version: version)
            : client.registration(version: version) { registration in
                registration.deviceToken = DeviceToken("token-\(number)")
                switch flaw {
                case 1: registration.tokenType = 7
                case 2: registration.apnTopic = ""
                case 3: registration.grant = []
                case 4: registration.allowFromContactsOnly = true
                case 5: registration.enabled = false
                case 6: (registration.tokenType, registration.apnTopic) = (2, "")
                default: break
                }
            }
        return toServer(
            client.envelope(registration), from: client.identity,
            topic: number % 2 == 0 ? StatusTopics.personal(server) : StatusTopics.partitioned(server))
    }

    private mutating func request() -> WakuMessage {
        let asker = asker()
        if let envelope = sentRequests.randomElement(using: &generator), Int.random(in: 0..<6, using: &generator) == 0 {
            return toServer(envelope, from: asker, topic: StatusTopics.partitioned(server))
        }
        var entries: [PushNotification] = []
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
            let client = clients.randomElement(using: &generator) ?? clients[0]
            let flaw = Int.random(in: 0..<10, using: &generator)
            let kind = NotificationKind(rawValue: Int32.random(in: 0...5, using: &generator))
            entries.append(
                client.notification(kind) { entry in
                    if flaw == 0 { entry.accessToken = AccessToken("00000000-0000-0000-0000-000000000000") }
                    if flaw == 1 { entry.installationID = InstallationID("unknown") }
                })
        }
        let messageID = messageIDs.randomElement(using: &generator) ?? []
        let payload = PushNotificationRequest(requests: entries, messageID: messageID).encoded()
        let envelope = MetadataEnvelope.encode(.request, payload: payload, signedBy: asker).bytes
        sentRequests.append(envelope)
        return toServer(envelope, from: asker, topic: StatusTopics.partitioned(server))
    }

    private func toServer(_ envelope: [UInt8], from sender: PrivateKey, topic: String) -> WakuMessage {
        message(TestPayload.sealed(envelope, signedBy: sender, to: server), topic: topic)
    }

    private func message(_ payload: [UInt8], topic: String) -> WakuMessage {
        WakuMessage(payload: payload, contentTopic: ContentTopic(TopicTag(of: topic)), timestamp: .now())
    }
}

extension RandomTraffic {
    struct Answer: Hashable {
        let recipient: PublicKey
        let kind: MessageKind
        /// The rows of a query's answer, in any order.
        let parts: Set<[UInt8]>

        init(_ kind: MessageKind, _ payload: [UInt8], to recipient: PublicKey) throws {
            self.recipient = recipient
            self.kind = kind
            guard kind == .queryResponse else {
                parts = [payload]
                return
            }
            let response = try PushNotificationQueryResponse(parsing: payload)
            parts = Set(
                response.info.map { PushNotificationQueryResponse(info: [$0], messageID: response.messageID).encoded() })
        }
    }

    static func configure(_ configuration: inout ServerConfiguration) {}

    var notified: [PlainNode.Notified] { plain.notified }

    mutating func plainAnswer(to message: WakuMessage) throws -> Answer? {
        try plain.receive(message).map { try Answer($0.kind, $0.payload, to: $0.recipient) }
    }

    func answer(in message: WakuMessage, to recipients: [PrivateKey]) throws -> Answer? {
        for recipient in recipients {
            guard let opened = try? EnvelopeSealing.open(message, identity: recipient) else { continue }
            let envelope = try MetadataEnvelope(parsing: opened.data, wakuSigner: opened.signer)
            return try Answer(envelope.kind, envelope.payload, to: recipient.publicKey)
        }
        return nil
    }

    func expectSame(in store: any Store) throws {
        for client in clients {
            let state = try store.read(Registrations(store.sealer).state(of: client.key))
            #expect(state?.version == plain.stored[client.key]?.version)
            #expect(state?.registration == plain.stored[client.key]?.registration)
        }
    }
}
