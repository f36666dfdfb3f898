import Core
import StatusProtocol
import TestSupport
import Waku
import WakuCrypto

/// Random messages of a few registrants and senders, by seed: valid and invalid, new and stale, single and repeated.
struct RandomTraffic {
    private static let devicesOfClient = 2

    private let server: PublicKey
    private var generator: SeededGenerator
    let clients: [TestClient]
    private let askers: [PrivateKey]
    private let topicKeys: [[SymmetricKey]]
    private let messageIDs: [[UInt8]]
    private var sentRequests: [[UInt8]] = []

    init(to server: PublicKey, seed: UInt64, registrants: Int) {
        self.server = server
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

    /// All clients that may get answers.
    var recipients: [PrivateKey] { clients.map(\.identity) + askers }

    private static func topics(_ client: TestClient) -> [String] {
        [StatusTopics.query(client.keyHash), StatusTopics.publishedQuery(client.keyHash)]
    }

    /// Valid and invalid registrations, mixed with damaged, repeated and foreign messages.
    mutating func registrations(_ count: Int) -> [WakuMessage] { mixed(count) { $0.registration() } }

    /// Like ``registrations(_:)``.
    mutating func requests(_ count: Int) -> [WakuMessage] { mixed(count) { $0.request() } }

    private mutating func mixed(_ count: Int, _ make: (inout RandomTraffic) -> WakuMessage) -> [WakuMessage] {
        var messages: [WakuMessage] = []
        while messages.count < count {
            switch Int.random(in: 0..<20, using: &generator) {
            case 0: messages.append(message([1, 2, 3], topic: "somebody else's"))
            case 1:
                var damaged = make(&self)
                damaged.payload = generator.damaged(damaged.payload)
                if !damaged.payload.isEmpty { messages.append(damaged) }
            case 2: if let again = messages.randomElement(using: &generator) { messages.append(again) }
            default: messages.append(make(&self))
            }
        }
        return messages
    }

    mutating func queries(_ count: Int) -> [WakuMessage] {
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
