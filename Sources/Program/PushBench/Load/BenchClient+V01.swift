import Core
import StatusProtocol
import Waku
import WakuCrypto

/// Messages of version 0.1.
extension BenchClient {
    /// A record of one device, about 330 bytes with five blocked chats: a new account each.
    func v01Registering(server: PublicKey) -> Question {
        let filters = V01.FilterSettings(isEnabled: true, blockedChatList: (0..<5).map { _ in randomBytes(32) })
        let device = V01.Device(platform: .apn, token: deviceToken, installationID: installationID, filters: filters)
        let record = V01.Preferences(devices: [device], version: 1, accessToken: accessToken)
        let register = V01.Register(record, for: server, signedBy: identity)
        return Question(.register, register.encoded(), to: server, signedBy: identity)
    }

    func v01Asking(server: PublicKey) -> Question {
        Question(.query, V01.Query([V01.KeyHash(of: identity.publicKey)]).encoded(), to: server, signedBy: .generate())
    }

    func v01Notifying(server: PublicKey) -> Question {
        let ackKey = randomBytes(SymmetricKey.byteCount)
        let entry = V01.PushNotification(accessToken: accessToken, chatID: randomBytes(32))
        let request = V01.Request(
            requests: [entry], message: randomBytes(150), messageID: Array(hexString(randomBytes(32)).utf8), ackKey: ackKey)
        let answers = V01.AckKey(ackKey)?.topic
        return Question(.request, request.encoded(), to: server, signedBy: .generate(), answersOn: answers)
    }
}

extension Question {
    /// - Parameters:
    ///   - sender: The key that signs both layers.
    ///   - topic: The topic of the answer; nil for the sender's topic.
    fileprivate init(
        _ type: V01.MessageType, _ payload: [UInt8], to server: PublicKey, signedBy sender: PrivateKey, answersOn topic: ContentTopic? = nil
    ) {
        let envelope = V01.Envelope.encode(type, payload: payload, signedBy: sender)
        let recipient = Recipient.key(server, topic: V01.serverTopic(server))
        let messages = EnvelopeSealing.seal(envelope, to: recipient, wakuSigner: sender, at: .now())
        precondition(messages.count == 1, "a message of the benchmark needs segments")
        self.init(
            message: ReceivedMessage(message: messages[0], pubsubTopic: .statusDefault),
            answerTopic: topic ?? Self.answerTopic(of: sender))
    }
}
