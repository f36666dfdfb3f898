import StatusProtocol
import Synchronization
import TestSupport
import Core
import Waku
import WakuCrypto

/// Sends version 0.1 messages to the server, and waits for answers.
final class V01Exchange: Sendable {
    private enum Question: Hashable {
        case register(requestID: [UInt8])
        case request(topic: ContentTopic)
    }

    private struct Waiting {
        let ackKey: V01.AckKey?
        let continuation: CheckedContinuation<[UInt8]?, Never>
    }

    private let identity: PrivateKey
    private let server: PublicKey
    private let relay: any Relay
    private let waiting = Mutex<[Question: Waiting]>([:])

    init(_ identity: PrivateKey, server: PublicKey, relay: any Relay) {
        self.identity = identity
        self.server = server
        self.relay = relay
    }

    /// Receives answers until cancelled.
    func run() async {
        let own = ContentTopic(TopicTag(of: StatusTopics.partitioned(identity.publicKey)))
        await relay.run { [self] messages in
            for message in messages.map(\.message) { take(message, own) }
        }
    }

    /// Returns nil without an answer in time.
    func register(_ register: V01.Register, within limit: Duration) async -> V01.RegistrationResponse? {
        let message = V01Account.message(.register, register.encoded(), to: server, signedBy: identity)
        let answer = await ask(message, .register(requestID: register.requestID), nil, within: limit)
        return answer.flatMap { try? V01.RegistrationResponse(parsing: $0) }
    }

    /// Returns nil without an acknowledgement in time.
    func request(_ entry: V01.PushNotification, message: [UInt8], within limit: Duration) async -> V01.Acknowledgement? {
        let named = randomBytes(SymmetricKey.byteCount)
        guard let ackKey = V01.AckKey(named) else { return nil }
        let request = V01.Request(requests: [entry], message: message, messageID: Array(hexString(message).utf8), ackKey: named)
        let sealed = V01Account.message(.request, request.encoded(), to: server, signedBy: .generate())
        let answer = await ask(sealed, .request(topic: ackKey.topic), ackKey, within: limit)
        return answer.flatMap { try? V01.Acknowledgement(parsing: $0) }
    }

    private func ask(_ message: WakuMessage, _ question: Question, _ ackKey: V01.AckKey?, within limit: Duration) async -> [UInt8]? {
        let timer = Task {
            try? await Task.sleep(for: limit)
            end(question, nil)
        }
        defer { timer.cancel() }
        return await withCheckedContinuation { continuation in
            waiting.withLock { $0[question] = Waiting(ackKey: ackKey, continuation: continuation) }
            Task {
                // A message that the relay rejects has no answer.
                if (try? await relay.publish(message, on: .statusDefault)) == nil { end(question, nil) }
            }
        }
    }

    private func end(_ question: Question, _ answer: [UInt8]?) {
        waiting.withLock { $0.removeValue(forKey: question) }?.continuation.resume(returning: answer)
    }

    private func take(_ message: WakuMessage, _ own: ContentTopic) {
        let asked = Question.request(topic: message.contentTopic)
        if let ackKey = waiting.withLock({ $0[asked]?.ackKey }) {
            guard let opened = try? EnvelopeSealing.open(message, identity: nil, topicKeys: [ackKey.key]), opened.signer == server,
                let envelope = try? V01.Envelope(parsing: opened.data, wakuSigner: opened.signer), envelope.type == .acknowledgement
            else { return }
            end(asked, envelope.payload)
        } else if message.contentTopic == own {
            guard let opened = try? EnvelopeSealing.open(message, identity: identity), opened.signer == server,
                let envelope = try? V01.Envelope(parsing: opened.data, wakuSigner: opened.signer), envelope.type == .registrationResponse,
                let response = try? V01.RegistrationResponse(parsing: envelope.payload)
            else { return }
            end(.register(requestID: response.requestID), envelope.payload)
        }
    }
}
