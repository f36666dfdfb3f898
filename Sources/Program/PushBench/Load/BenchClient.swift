import Foundation
import Core
import StatusProtocol
import StatusServer
import Waku
import WakuCrypto

/// A registrant with one device, and the messages that it and its senders send to the node.
struct BenchClient: Sendable {
    let identity: PrivateKey
    let keyHash: KeyHash
    let installationID: InstallationID
    let accessToken: AccessToken
    let deviceToken: DeviceToken

    init(deviceToken: DeviceToken) {
        identity = .generate()
        keyHash = KeyHash(of: identity.publicKey)
        installationID = InstallationID(UUID().uuidString.lowercased())
        accessToken = Self.accessToken()
        self.deviceToken = deviceToken
    }

    var key: RegistrationKey { RegistrationKey(keyHash: keyHash, installationID: installationID) }

    static func accessToken() -> AccessToken { AccessToken(UUID().uuidString.lowercased()) }

    /// The parts of a registration that don't depend on keys.
    static func device(token: DeviceToken, accessToken: AccessToken) -> PushNotificationRegistration {
        var registration = PushNotificationRegistration()
        registration.tokenType = UInt32(Platform.apn.rawValue)
        registration.deviceToken = token
        registration.installationID = InstallationID(UUID().uuidString.lowercased())
        registration.accessToken = accessToken
        registration.enabled = true
        registration.apnTopic = "im.status.ethereum"
        return registration
    }

    /// About 570 bytes with its grant and five blocked chats, like a typical registration.
    func registration(version: UInt64, server: PublicKey) -> PushNotificationRegistration {
        var registration = Self.device(token: deviceToken, accessToken: accessToken)
        registration.installationID = installationID
        registration.version = version
        registration.grant = Grant.make(client: identity, server: server, accessToken: accessToken)
        registration.blockedChatList = (0..<5).map { _ in randomBytes(64) }
        return registration
    }

    /// A registration of the usual size, with random bytes as key hash and grant.
    static func strangersRecord() -> RegistrationRecord {
        var registration = device(
            token: DeviceToken(hexString(randomBytes(32))), accessToken: AccessToken("9f1b0c6e-52d3-4b7a-8a57-0d2c6d1e4f3a"))
        registration.version = 1
        registration.grant = randomBytes(65)
        registration.blockedChatList = (0..<5).map { _ in randomBytes(64) }
        guard let hash = KeyHash(bytes: randomBytes(KeyHash.byteCount)) else { preconditionFailure("a key hash has another length") }
        return RegistrationRecord(
            key: RegistrationKey(keyHash: hash, installationID: registration.installationID), version: 1, changedAt: .now(),
            registration: registration.encoded())
    }

    // MARK: Messages

    func registering(version: UInt64, server: PublicKey) -> Question {
        let sealed = AESGCM.seal(
            registration(version: version, server: server).encoded(), key: identity.sharedKey(with: server), layout: .nonceFirst)
        return Question(.registration, sealed, to: .personal(server), signedBy: identity)
    }

    /// - Parameter topicKey: the key of this client's query topic.
    func asking(topicKey: SymmetricKey) -> Question {
        let query = PushNotificationQuery(publicKeys: [keyHash]).encoded()
        return Question(.query, query, to: .topic(StatusTopics.query(keyHash), topicKey), signedBy: .generate())
    }

    func notifying(server: PublicKey, signedBy sender: PrivateKey = .generate()) -> Question {
        let notification = PushNotification(
            accessToken: accessToken, chatID: randomBytes(64), publicKey: keyHash.bytes, installationID: installationID,
            message: randomBytes(150), kind: .message, author: randomBytes(64))
        let request = PushNotificationRequest(requests: [notification], messageID: randomBytes(32)).encoded()
        return Question(.request, request, to: .partitioned(server), signedBy: sender)
    }
}

/// A message that is answered, and the topic of its answer.
struct Question: Sendable {
    let message: ReceivedMessage
    /// Each sender has one of 5,000 partitions, so concurrent senders rarely share one.
    let answerTopic: ContentTopic
}

extension Question {
    init(_ kind: MessageKind, _ payload: [UInt8], to recipient: Recipient, signedBy sender: PrivateKey) {
        let envelope = MetadataEnvelope.encode(kind, payload: payload, signedBy: sender)
        let messages = EnvelopeSealing.seal(envelope.bytes, to: recipient, wakuSigner: sender, at: .now())
        precondition(messages.count == 1, "a message of the benchmark needs segments")
        message = ReceivedMessage(message: messages[0], pubsubTopic: .statusDefault)
        answerTopic = Self.answerTopic(of: sender)
    }

    static func answerTopic(of sender: PrivateKey) -> ContentTopic {
        ContentTopic(TopicTag(of: StatusTopics.partitioned(sender.publicKey)))
    }
}
