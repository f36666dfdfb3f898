import NodeAPI
import NodeMetrics
import StatusProtocol
import RateLimits
import StatusRules
import Core
import Waku
import WakuCrypto

/// The command of a version 0.1 message.
enum V01Command: Sendable {
    case register(V01.RegisterClaim)
    case query(V01.Query, sender: PublicKey)
    /// `key` identifies the request: see ``V01Answers``.
    case request(V01.Request, key: [UInt8], expires: Timestamp)

    var kind: KindLabel {
        switch self {
        case .register: .registration
        case .query: .query
        case .request: .request
        }
    }
}

/// Decodes Waku messages into commands: decrypts, verifies signatures and parses. Does not read the store; may be called on any thread.
final class V01Decoder: Sendable {
    private let identity: PrivateKey
    private let server: ServerMark?
    private let rules: V01.RegisterRules
    private let ages: RequestRules
    private let limits: V01Limits
    private let segments: SegmentReassembly

    init(
        identity: PrivateKey, server: ServerMark? = nil, rules: V01.RegisterRules, ages: RequestRules, limits: V01Limits,
        segments: SegmentAssembler.Limits = SegmentAssembler.Limits()
    ) {
        self.identity = identity
        self.server = server
        self.rules = rules
        self.ages = ages
        self.limits = limits
        self.segments = SegmentReassembly(limits: segments, limiter: limits.limiter)
    }

    /// - Parameter isRetry: whether this is a retry: see ``NodeAPI/Incoming/isRetry``.
    /// - Returns: the command, and the reassembled message if this message was its last segment.
    func decode(
        _ message: WakuMessage, isRetry: Bool = false, at now: Timestamp
    ) throws(Drop) -> (command: V01Command, whole: ReassembledMessage?) {
        let frame: PayloadFrame
        do throws(OpeningError) {
            frame = try EnvelopeSealing.openFrame(message, identity: identity)
        } catch {
            throw Drop(error)
        }
        let segment = SegmentMessage(parsing: frame.data)
        var part = Part(isSegmented: segment != nil, isRetry: isRetry)
        let (bytes, whole) = try whole(frame, segment, part, sentAt: message.timestamp, at: now)
        let envelope: V01.Envelope
        do throws(EnvelopeError) {
            envelope = try V01.Envelope(parsing: bytes, in: frame)
        } catch {
            throw Drop(error)
        }
        // Both signatures of a request are optional. Requests without any have no sender and together have the limits of one sender.
        let content = SignedContent(envelope.payload, by: envelope.sender)
        try admit(part) {
            part.isRepetition = $0.isRepetition(of: content)
            return part.isSegmented ? nil : $0.message(from: envelope.sender, isRepetition: part.isRepetition, at: now)
        }
        return (try command(in: envelope, frame, part, sentAt: message.timestamp, now: now), whole)
    }

    /// The properties of a message's receipt that limits depend on.
    private struct Part {
        let isSegmented: Bool
        let isRetry: Bool
        var isRepetition = false
    }

    private func admit(_ part: Part, _ ask: (inout RateLimitTable) -> RateLimitTable.Refusal?) throws(Drop) {
        try limits.admit(isSegmented: part.isSegmented, isRetry: part.isRetry, ask)
    }

    /// The envelope in the Waku payload, or the one that its segment completes. Segments are reassembled per signer; unsigned ones are dropped.
    private func whole(
        _ frame: PayloadFrame, _ segment: SegmentMessage?, _ part: Part, sentAt: Timestamp, at now: Timestamp
    ) throws(Drop) -> (bytes: [UInt8], whole: ReassembledMessage?) {
        guard let segment else { return (frame.data, nil) }
        guard frame.signature != nil else { throw Drop(.droppedUnsigned) }
        guard let signer = try? frame.signer() else { throw Drop(.droppedBadSignature) }
        let content = SignedContent(frame.data, by: signer)
        try admit(part) { $0.message(from: signer, isRepetition: $0.isRepetition(of: content), at: now) }
        return try segments.message(completedBy: segment, from: signer, sentAt: sentAt, at: now)
    }

    private func command(
        in envelope: V01.Envelope, _ frame: PayloadFrame, _ part: Part, sentAt timestamp: Timestamp, now: Timestamp
    ) throws(Drop) -> V01Command {
        switch envelope.type {
        case .register:
            let sender = try signedSender(of: envelope, frame)
            let register = try Drop.parsing(envelope.payload, V01.Register.init(parsing:))
            guard let claim = rules.claim(in: register, from: sender) else { throw Drop(.droppedBadSignature) }
            // Not before: anyone can send other messages of the sender in an envelope of this type.
            try admit(part) { $0.message(MessageClass.registration, from: sender, isRepetition: part.isRepetition, at: now) }
            return .register(claim)
        case .query:
            let sender = try signedSender(of: envelope, frame)
            try admit(part) { $0.message(MessageClass.query, from: sender, at: now) }
            let query = try Drop.parsing(envelope.payload, V01.Query.init(parsing:))
            return .query(query, sender: sender)
        case .request:
            try admit(part) { $0.message(MessageClass.request, from: envelope.sender, at: now) }
            let request = try Drop.parsing(envelope.payload, V01.Request.init(parsing:))
            guard !request.messageID.isEmpty else { throw Drop(.droppedNoMessageID) }
            guard V01.RequestRules.isComplete(request) else { throw Drop(.droppedMalformedMessage) }
            guard let expires = ages.expiry(of: timestamp, at: now) else { throw Drop(.droppedOldRequest) }
            return .request(request, key: V01Answers.key(of: envelope.payload, to: server), expires: expires)
        case .registrationResponse, .contactCodeAdvertisement, .queryResponse, .acknowledgement:
            throw Drop(.droppedOtherKind)
        }
    }

    /// The sender of a message that is answered to its sender: its Waku payload must be signed.
    private func signedSender(of envelope: V01.Envelope, _ frame: PayloadFrame) throws(Drop) -> PublicKey {
        guard frame.signature != nil, let sender = envelope.sender else { throw Drop(.droppedUnsigned) }
        return sender
    }
}
