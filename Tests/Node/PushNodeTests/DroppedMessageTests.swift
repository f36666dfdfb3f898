import LoopbackRelay
import NodeMetrics
import StatusProtocol
import TestSupport
import Testing
import Core
import Waku
import WakuCrypto

@Suite("Foreign and invalid messages are dropped and counted by reason")
struct DroppedMessageTests {
    let fixture: NodeFixture
    let bob: TestClient
    var server: PublicKey { fixture.identity.publicKey }

    init() throws {
        fixture = try NodeFixture()
        bob = TestClient(of: fixture.identity.publicKey)
    }

    private func expect(_ counter: Counter, _ message: WakuMessage) async throws {
        try await fixture.withNode { node async throws in
            node.network.publish(message, on: .statusDefault)
            try await node.wait { node.count(counter) == 1 }
            #expect(node.count(.answerPublished) == 0)
        }
    }

    private func sealed(_ envelope: [UInt8], at timestamp: Timestamp = .now()) throws -> WakuMessage {
        try #require(EnvelopeSealing.seal(envelope, to: .partitioned(server), wakuSigner: .generate(), at: timestamp).first)
    }

    private func message(_ frame: [UInt8]) -> WakuMessage {
        let topic = ContentTopic(TopicTag(of: StatusTopics.personal(server)))
        return WakuMessage(payload: ECIES.seal(frame, to: server), contentTopic: topic, timestamp: .now())
    }

    @Test("Other topics", arguments: ["/waku/1/0x00000000/rfc26", "/waku/1/0x0/rfc26", "", "/toy-chat/2/huilong/proto"])
    func foreign(topic: String) async throws {
        try await expect(.foreign, WakuMessage(payload: [1], contentTopic: ContentTopic(rawValue: topic), timestamp: .now()))
    }

    @Test("Messages that none of the node's keys decrypts")
    func undecryptable() async throws {
        var message = message(PayloadFrame.encode([1], signedBy: bob.identity))
        message.payload[70] ^= 1
        try await expect(.droppedUndecryptable, message)
    }

    @Test("Malformed and unsigned frames")
    func frames() async throws {
        try await expect(.droppedMalformedPayload, message([0x07, 0xFF, 0xFF, 0xFF]))
        try await expect(.droppedUnsigned, message([0x01, 0x01, 0x00]))
    }

    @Test("Malformed, empty and other envelopes")
    func envelopes() async throws {
        try await expect(.droppedMalformedEnvelope, sealed([0x0A, 0xFF]))
        try await expect(.droppedOtherKind, sealed([0x12, 0x01, 0x00, 0x18, 0x01]))
        try await expect(.droppedEmpty, sealed([0x18, 0x12]))
        try await expect(.droppedBadSignature, sealed([0x0A, 0x01, 0x01, 0x12, 0x01, 0x00, 0x18, 0x12]))
        try await expect(.droppedOtherKind, sealed(MetadataEnvelope.encode(.response, payload: [1], signedBy: bob.identity).bytes))
    }

    @Test("Registrations that were not sealed by their signer")
    func unsealable() async throws {
        let envelope = MetadataEnvelope.encode(.registration, payload: bob.sealed([1]), signedBy: .generate()).bytes
        try await expect(.droppedUnsealable, sealed(envelope))
    }

    @Test("Malformed and oversized queries and requests")
    func messages() async throws {
        try await expect(
            .droppedMalformedMessage, sealed(MetadataEnvelope.encode(.query, payload: [0x0A, 0xFF], signedBy: bob.identity).bytes))
        let keys = Array(repeating: bob.keyHash, count: PushNotificationQuery.keyLimit + 1)
        let query = PushNotificationQuery(publicKeys: keys).encoded()
        try await expect(.droppedTooMany, sealed(MetadataEnvelope.encode(.query, payload: query, signedBy: bob.identity).bytes))
    }

    @Test("Requests without a message id, and old ones")
    func requests() async throws {
        let nameless = PushNotificationRequest(requests: [], messageID: [])
        let named = PushNotificationRequest(requests: [], messageID: [1])
        let entry = PushNotification(
            accessToken: bob.accessToken, chatID: [], publicKey: bob.keyHash.bytes, installationID: bob.installationID, kind: .message,
            author: [])
        let withoutID = PushNotificationRequest(requests: [entry], messageID: nameless.messageID).encoded()
        try await expect(.droppedNoMessageID, sealed(MetadataEnvelope.encode(.request, payload: withoutID, signedBy: bob.identity).bytes))
        let old = MetadataEnvelope.encode(.request, payload: named.encoded(), signedBy: bob.identity).bytes
        try await expect(.droppedOldRequest, sealed(old, at: .now() - .seconds(3600)))
    }
}
