import Core
import StatusProtocol
import TestSupport
import Waku
import WakuCrypto

/// Messages between clients and servers of Status.
extension Decoder {
    static var status: [Decoder] { pushMessages + wrappings }

    private struct NoSegment: Error {}

    /// Payloads of recorded envelopes of a kind, at most four.
    private static func recorded(_ kind: MessageKind) -> [[UInt8]] {
        let envelopes = StatusGoVectors.recorded.messages.lazy.compactMap(\.applicationMetadata).filter { $0.type == kind.rawValue }
        return Array(envelopes.compactMap { $0.payload?.bytes }.prefix(4))
    }

    private static var pushMessages: [Decoder] {
        let registrations = StatusGoVectors.recorded.messages.lazy.compactMap { $0.registration?.plaintext?.bytes }.prefix(4)
        return [
            message(
                "registrations", Array(registrations), { try PushNotificationRegistration(parsing: $0) }, { $0.encoded() }),
            message(
                "answers to registrations", recorded(.registrationResponse), { try PushNotificationRegistrationResponse(parsing: $0) },
                { $0.encoded() }),
            message("queries", recorded(.query), { try PushNotificationQuery(parsing: $0) }, { $0.encoded() }),
            message(
                "answers to queries", recorded(.queryResponse), { try PushNotificationQueryResponse(parsing: $0) }, { $0.encoded() }),
            message("requests", recorded(.request), { try PushNotificationRequest(parsing: $0) }, { $0.encoded() }),
            message("answers to requests", recorded(.response), { try PushNotificationResponse(parsing: $0) }, { $0.encoded() }),
        ]
    }

    private static var wrappings: [Decoder] {
        let messages = StatusGoVectors.recorded.messages
        let advertisements = AdvertisementVectors.recorded.cases
        let signer = ((try? PrivateKey(bytes: [UInt8](repeating: 3, count: 32))) ?? .generate()).publicKey
        let whole = (0..<90).map { UInt8($0) }
        let hash = Keccak256.hash(whole)
        let parts = (0..<3).map { SegmentMessage(wholeHash: hash, index: $0, count: 3, payload: Array(whole[$0 * 30..<$0 * 30 + 30])) }
        return [
            reading("payloads of Waku messages", Array(messages.lazy.compactMap { $0.payloadPlain?.bytes.bytes }.prefix(3))) {
                _ = try PayloadFrame(parsing: $0).signer()
            },
            reading("envelopes", Array(messages.lazy.compactMap { $0.applicationMetadata?.bytes.bytes }.prefix(6))) {
                _ = try MetadataEnvelope(parsing: $0, wakuSigner: signer).id
            },
            message(
                "wrappers of public messages",
                [ProtocolMessage(installationID: InstallationID("a"), bundles: [[1], [2, 3]], publicMessage: [4]).encoded()],
                { try ProtocolMessage(parsing: $0) }, { $0.encoded() }),
            reading("signed advertisements", Array(advertisements.lazy.map(\.payloadPlain.data.bytes).prefix(4))) {
                _ = try SignedAdvertisement(parsing: $0)
            },
            message(
                "segments", parts.map { $0.encoded() },
                { bytes throws(NoSegment) in
                    guard let segment = SegmentMessage(parsing: bytes) else { throw NoSegment() }
                    return segment
                }, { $0.encoded() }),
            reading("rows of segments", [Steps.encode(parts.map { (0, $0.encoded()) })]) { bytes in
                var limits = SegmentAssembler.Limits()
                limits.byteCount = 6_000
                limits.wholeCount = 6
                var assembler = SegmentAssembler(limits: limits)
                var now = Timestamp(rawValue: 1_700_000_000_000_000_000)
                for step in Steps(bytes) {
                    // Known signers and strangers, and time that passes.
                    now = now + .seconds(Int(step.kind >> 2))
                    guard let segment = SegmentMessage(parsing: step.bytes) else { throw NoSegment() }
                    let from = step.kind & 2 == 0 ? signer : Self.stranger
                    if let whole = assembler.add(segment, from: from, isKnown: step.kind & 1 == 0, at: now) {
                        precondition(Keccak256.hash(whole.bytes) == segment.wholeHash)
                    }
                }
            },
        ]
    }

    private static let stranger = ((try? PrivateKey(bytes: [UInt8](repeating: 5, count: 32))) ?? .generate()).publicKey
}
