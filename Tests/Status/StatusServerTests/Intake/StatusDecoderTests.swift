import Core
import NodeAPI
import NodeMetrics
import RateLimits
import StatusRules
import TestSupport
import Testing
import WakuCrypto

@testable import StatusProtocol
@testable import StatusServer
@testable import Waku

@Suite("The signer of a Waku payload is recovered only for segments and unsigned envelopes")
struct StatusDecoderTests {
    private static let server = PrivateKey.generate()
    private static let client = TestClient(of: server.publicKey)
    private static let now = Timestamp.now()

    /// Signatures of the right form from which no key can be recovered.
    private static let unrecoverable = [[UInt8](repeating: 0xFF, count: 64) + [3], [UInt8](repeating: 0, count: 65)]

    private func decoder(_ texts: String...) throws -> StatusDecoder {
        var limits = Limits.none
        for text in texts { try limits.set(text) }
        return StatusDecoder(
            identity: Self.server, registrations: RegistrationRules(identity: Self.server),
            requests: RequestRules(maximumAge: .seconds(600)), versions: RecentVersions(), limits: StatusLimits(limits))
    }

    private func message(_ frame: [UInt8]) -> ReceivedMessage {
        ReceivedMessage(
            message: WakuMessage(
                payload: ECIES.seal(frame, to: Self.server.publicKey),
                contentTopic: ContentTopic(TopicTag(of: StatusTopics.partitioned(Self.server.publicKey))), timestamp: Self.now),
            pubsubTopic: .statusDefault)
    }

    private func message(_ data: [UInt8], signature: [UInt8]) -> ReceivedMessage {
        message(PayloadFrame.encode(data, signedBy: .generate()).dropLast(65) + signature)
    }

    private func message(_ data: [UInt8], signedBy key: PrivateKey) -> ReceivedMessage {
        message(PayloadFrame.encode(data, signedBy: key))
    }

    /// The sender of the registration in a message.
    private func sender(in message: ReceivedMessage, by decoder: StatusDecoder) throws -> PublicKey? {
        let (command, _) = try decoder.decode(message, isOwnTopic: true, keys: [], isRetry: false, at: Self.now)
        guard case .registration(let claim) = command else { return nil }
        return claim.sender
    }

    private func drop(of message: ReceivedMessage, by decoder: StatusDecoder) -> Counter? {
        do throws(Drop) {
            _ = try decoder.decode(message, isOwnTopic: true, keys: [], isRetry: false, at: Self.now)
            return nil
        } catch {
            return error.counter
        }
    }

    private var envelope: [UInt8] { Self.client.envelope(Self.client.registration()) }

    private var unsignedEnvelope: [UInt8] {
        MetadataEnvelope.encode(
            type: MessageKind.registration.rawValue, payload: Self.client.sealed(Self.client.registration().encoded()), signedBy: nil)
    }

    @Test(arguments: unrecoverable)
    func aSignedEnvelopeIsAcceptedWithoutTheSigner(signature: [UInt8]) throws {
        #expect(try sender(in: message(envelope, signature: signature), by: decoder()) == Self.client.identity.publicKey)
    }

    @Test func theSignatureMustHaveItsForm() throws {
        let signature = [UInt8](repeating: 1, count: 64) + [4]
        #expect(drop(of: message(envelope, signature: signature), by: try decoder()) == .droppedMalformedPayload)
        let unsigned = PayloadFrame.encode(envelope, signedBy: nil) { [UInt8](repeating: 0, count: $0) }
        #expect(drop(of: message(unsigned), by: try decoder()) == .droppedUnsigned)
    }

    @Test func theSignerIsTheSenderOfAnUnsignedEnvelope() throws {
        #expect(try sender(in: message(unsignedEnvelope, signedBy: Self.client.identity), by: decoder()) == Self.client.identity.publicKey)
        #expect(drop(of: message(unsignedEnvelope, signedBy: .generate()), by: try decoder()) == .droppedUnsealable)
        for signature in Self.unrecoverable {
            #expect(drop(of: message(unsignedEnvelope, signature: signature), by: try decoder()) == .droppedBadSignature)
        }
    }

    @Test func aRequestWithoutAnIDIsDropped() throws {
        for (id, counter) in [([], .droppedNoMessageID), ([1], nil)] as [([UInt8], Counter?)] {
            let request = PushNotificationRequest(requests: [Self.client.notification()], messageID: id)
            let envelope = MetadataEnvelope.encode(.request, payload: request.encoded(), signedBy: Self.client.identity).bytes
            #expect(drop(of: message(envelope, signedBy: .generate()), by: try decoder()) == counter)
        }
    }

    private func segments(of envelope: [UInt8]) -> [[UInt8]] {
        let (hash, middle) = (Keccak256.hash(envelope), envelope.count / 2)
        return [Array(envelope[..<middle]), Array(envelope[middle...])].enumerated().map { index, part in
            SegmentMessage(wholeHash: hash, index: index, count: 2, payload: part).encoded()
        }
    }

    @Test func segmentsAreReassembledBySigner() throws {
        let decoder = try decoder()
        let parts = segments(of: envelope)
        let (one, other) = (PrivateKey.generate(), PrivateKey.generate())
        for signature in Self.unrecoverable {
            #expect(drop(of: message(parts[0], signature: signature), by: decoder) == .droppedBadSignature)
        }
        #expect(drop(of: message(parts[0], signedBy: one), by: decoder) == .segment)
        #expect(drop(of: message(parts[1], signedBy: other), by: decoder) == .segment)
        #expect(try sender(in: message(parts[1], signedBy: one), by: decoder) == Self.client.identity.publicKey)
    }

    @Test func segmentsThatMakeRoomForOthersAreReported() throws {
        let limits = StatusLimits(.none)
        var segments = SegmentAssembler.Limits()
        segments.wholeCount = 2
        let decoder = StatusDecoder(
            identity: Self.server, registrations: RegistrationRules(identity: Self.server),
            requests: RequestRules(maximumAge: .seconds(600)), versions: RecentVersions(), limits: limits, segments: segments)
        for number in UInt8(0)..<5 {
            let part = SegmentMessage(wholeHash: randomBytes(32), index: 0, count: 2, payload: [number]).encoded()
            #expect(drop(of: message(part, signedBy: .generate()), by: decoder) == .segment)
        }
        let totals = limits.limiter.refusals.totals
        #expect(totals.count == 1 && totals.first?.key.limit == .segments && totals.first?.value == 3)
    }

    @Test func messagesCountForTheSignerOfTheEnvelope() throws {
        let decoder = try decoder("messages-by-sender=3/d")
        let envelopes = (1...4).map { Self.client.envelope(Self.client.registration(version: $0)) }
        for envelope in envelopes[..<3] { _ = try sender(in: message(envelope, signedBy: .generate()), by: decoder) }
        #expect(drop(of: message(envelopes[3], signedBy: .generate()), by: decoder) == .droppedLimited)
        let other = TestClient(of: Self.server.publicKey)
        // Another sender is not affected by the signer of its Waku payload.
        #expect(
            try sender(in: message(other.envelope(other.registration()), signedBy: Self.client.identity), by: decoder)
                == other.identity.publicKey)
    }

    @Test("What others send again does not count for its signer", arguments: ["messages-by-sender=3/d", "registrations-by-sender=3/d"])
    func repetitions(limit: String) throws {
        let (decoder, envelope) = (try decoder(limit), envelope)
        #expect(try sender(in: message(envelope, signedBy: .generate()), by: decoder) == Self.client.identity.publicKey)
        // The registration in further messages, and another signed message of the client in the envelope of a registration.
        let other = MetadataEnvelope.encode(.registration, payload: [1, 2, 3], signedBy: Self.client.identity).bytes
        let drops = (0..<20).flatMap { _ in [envelope, other].map { drop(of: message($0, signedBy: .generate()), by: decoder) } }
        #expect(drops.count { $0 == .droppedLimited } > 10)
        #expect(drops.contains(.droppedUnsealable))
        let renewal = Self.client.envelope(Self.client.registration(version: 2))
        #expect(drop(of: message(renewal, signedBy: .generate()), by: decoder) == nil)
    }

    @Test func repeatedSegmentsDoNotCountForTheirSigner() throws {
        let decoder = try decoder("messages-by-sender=2/d")
        let signer = PrivateKey.generate()
        let parts = (0..<2).map { number in SegmentMessage(wholeHash: randomBytes(32), index: 0, count: 2, payload: [number]).encoded() }
        let drops = (0..<20).map { _ in drop(of: message(parts[0], signedBy: signer), by: decoder) }
        #expect(drops.last == .droppedLimited)
        #expect(drop(of: message(parts[1], signedBy: signer), by: decoder) == .segment)
    }

    @Test func segmentsCountForTheirSigner() throws {
        let decoder = try decoder("messages-by-sender=3/d")
        let flooder = PrivateKey.generate()
        let parts = (0..<4).map { number in SegmentMessage(wholeHash: randomBytes(32), index: 0, count: 2, payload: [number]).encoded() }
        for part in parts[..<3] { #expect(drop(of: message(part, signedBy: flooder), by: decoder) == .segment) }
        #expect(drop(of: message(parts[3], signedBy: flooder), by: decoder) == .droppedLimited)
        #expect(try sender(in: message(envelope, signedBy: flooder), by: decoder) == Self.client.identity.publicKey)
    }
}
