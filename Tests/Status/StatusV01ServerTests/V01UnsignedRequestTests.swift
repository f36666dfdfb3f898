import Core
import NodeAPI
import NodeMetrics
import RateLimits
import StatusProtocol
import StatusRules
import TestSupport
import Testing
import WakuCrypto

@testable import StatusV01Server
@testable import Waku

@Suite("Version 0.1: requests without a signature")
struct V01UnsignedRequestTests {
    private let server = PrivateKey.generate()
    private let now = Timestamp.now()

    private func decoder(_ texts: String...) throws -> V01Decoder {
        var limits = Limits.none
        for text in texts { try limits.set(text) }
        return V01Decoder(
            identity: server, rules: V01.RegisterRules(server: server.publicKey), ages: RequestRules(maximumAge: .seconds(600)),
            limits: V01Limits(limits))
    }

    private func request(envelopeSigner: PrivateKey?, frameSigner: PrivateKey?) -> WakuMessage {
        let entry = V01.PushNotification(accessToken: V01Account.newToken(), chatID: V01.chatHash("a chat"))
        let request = V01.Request(
            requests: [entry], message: [1], messageID: Array(hexString(randomBytes(16)).utf8), ackKey: randomBytes(32))
        let envelope = V01.Envelope.encode(.request, payload: request.encoded(), signedBy: envelopeSigner)
        let frame = PayloadFrame.encode(envelope, signedBy: frameSigner, padding: randomBytes)
        return WakuMessage(
            payload: ECIES.seal(frame, to: server.publicKey), contentTopic: ContentTopic(TopicTag(of: V01.serverTopic(server.publicKey))),
            timestamp: now)
    }

    private func isAdmitted(_ message: WakuMessage, by decoder: V01Decoder) -> Bool {
        (try? decoder.decode(message, at: now)) != nil
    }

    @Test(arguments: ["requests-by-sender=3/h", "messages-by-sender=3/h"])
    func haveTheLimitsOfOneSender(limit: String) throws {
        let decoder = try decoder(limit)
        let flood = (0..<20).map { _ in isAdmitted(request(envelopeSigner: nil, frameSigner: nil), by: decoder) }
        #expect(flood.count(where: \.self) == 3)
        // Requests with either signature are not affected.
        let (first, second) = (PrivateKey.generate(), PrivateKey.generate())
        for _ in 0..<3 {
            #expect(isAdmitted(request(envelopeSigner: first, frameSigner: nil), by: decoder))
            #expect(isAdmitted(request(envelopeSigner: nil, frameSigner: second), by: decoder))
        }
        #expect(!isAdmitted(request(envelopeSigner: first, frameSigner: nil), by: decoder))
        #expect(!isAdmitted(request(envelopeSigner: nil, frameSigner: second), by: decoder))
    }

    /// A request whose Waku payload has a signature from which no key can be recovered.
    private func request(envelope: [UInt8]) -> WakuMessage {
        let frame = PayloadFrame.encode(envelope, signedBy: server).dropLast(65) + [UInt8](repeating: 0, count: 65)
        return WakuMessage(
            payload: ECIES.seal(Array(frame), to: server.publicKey),
            contentTopic: ContentTopic(TopicTag(of: V01.serverTopic(server.publicKey))), timestamp: now)
    }

    @Test("The signer of the Waku payload is recovered only for unsigned envelopes and segments")
    func signers() throws {
        let decoder = try decoder()
        let payload = V01.Request(
            requests: [V01.PushNotification(accessToken: V01Account.newToken(), chatID: V01.chatHash("a chat"))], message: [1],
            messageID: Array(hexString(randomBytes(16)).utf8), ackKey: randomBytes(32)
        ).encoded()
        #expect(isAdmitted(request(envelope: V01.Envelope.encode(.request, payload: payload, signedBy: .generate())), by: decoder))
        #expect(!isAdmitted(request(envelope: V01.Envelope.encode(.request, payload: payload, signedBy: nil)), by: decoder))
        let segment = SegmentMessage(wholeHash: randomBytes(32), index: 0, count: 2, payload: [1]).encoded()
        do throws(Drop) {
            _ = try decoder.decode(request(envelope: segment), at: now)
            Issue.record("the segment was accepted")
        } catch {
            #expect(error.counter == .droppedBadSignature)
        }
    }
}
