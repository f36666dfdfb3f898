import RateLimits
import NodeAPI
import NodeMetrics
import StatusProtocol
import StatusRules
import Core
import Waku
import WakuCrypto

/// The command of a Status message. Indirect, since it is copied several times on its way, and a claim has many parts.
indirect enum StatusCommand: Sendable {
    case registration(RegistrationClaim)
    case query(PushNotificationQuery, MessageOrigin)
    case request(PushNotificationRequest, MessageOrigin, expires: Timestamp)

    var kind: KindLabel {
        switch self {
        case .registration: .registration
        case .query: .query
        case .request: .request
        }
    }
}

/// The envelope of a query or request, without its bytes: they would take as much memory again until it is answered.
struct MessageOrigin: Sendable {
    /// The envelope's id, 32 bytes.
    let id: [UInt8]
    let sender: PublicKey

    init(_ envelope: MetadataEnvelope) {
        id = envelope.id
        sender = envelope.sender
    }
}

/// Decodes Waku messages into commands: decrypts, verifies signatures, unseals and parses. Does not read the store; may be called on any thread.
final class StatusDecoder: Sendable {
    private let identity: PrivateKey
    private let registrations: RegistrationRules
    private let requests: RequestRules
    private let versions: RecentVersions
    private let isStored: @Sendable (KeyHash) -> Bool
    private let limits: StatusLimits
    private let segments: SegmentReassembly

    /// - Parameter isStored: see ``StatusRules/RegistrationRules/claim(in:knownVersion:isStored:)``.
    init(
        identity: PrivateKey, registrations: RegistrationRules, requests: RequestRules, versions: RecentVersions, limits: StatusLimits,
        segments: SegmentAssembler.Limits = SegmentAssembler.Limits(), isStored: @escaping @Sendable (KeyHash) -> Bool = { _ in false }
    ) {
        self.identity = identity
        self.registrations = registrations
        self.requests = requests
        self.versions = versions
        self.limits = limits
        self.isStored = isStored
        self.segments = SegmentReassembly(limits: segments, limiter: limits.limiter)
    }

    /// - Parameters:
    ///   - message: a message on a topic of this protocol.
    ///   - isOwnTopic: whether it may be encrypted to the node's own key.
    ///   - isRetry: whether this is a retry: see ``NodeAPI/Incoming/isRetry``.
    /// - Returns: the command, and the reassembled message if this message was its last segment.
    func decode(
        _ message: ReceivedMessage, isOwnTopic: Bool, keys: [SymmetricKey], isRetry: Bool, at now: Timestamp
    ) throws(Drop) -> (command: StatusCommand, whole: ReassembledMessage?) {
        let (envelope, receipt, whole) = try envelope(
            in: message.message, isOwnTopic: isOwnTopic, keys: keys, isRetry: isRetry, at: now)
        return (try command(in: envelope, receipt, sentAt: message.message.timestamp, now: now), whole)
    }

    /// The properties of a message's receipt that limits depend on.
    private struct Receipt {
        let isSegmented: Bool
        let isRetry: Bool
        var isRepetition = false
    }

    private func envelope(
        in message: WakuMessage, isOwnTopic: Bool, keys: [SymmetricKey], isRetry: Bool, at now: Timestamp
    ) throws(Drop) -> (MetadataEnvelope, Receipt, ReassembledMessage?) {
        let frame: PayloadFrame
        do throws(OpeningError) {
            frame = try EnvelopeSealing.openFrame(message, identity: isOwnTopic ? identity : nil, topicKeys: keys)
        } catch {
            throw Drop(error)
        }
        // The sender is the signer of the envelope, so the signer of the Waku payload is not recovered, except for segments and unsigned envelopes.
        guard frame.signature != nil else { throw Drop(OpeningError.unsigned) }
        var reassembled: (bytes: [UInt8], whole: ReassembledMessage)?
        if let segment = SegmentMessage(parsing: frame.data) {
            reassembled = try self.reassembled(by: segment, in: frame, sentAt: message.timestamp, isRetry: isRetry, at: now)
        }
        let envelope: MetadataEnvelope
        do throws(EnvelopeError) {
            envelope = try MetadataEnvelope(parsing: reassembled?.bytes ?? frame.data, in: frame)
        } catch {
            throw Drop(error)
        }
        // Checked here because unsealing, grants and rows cost several times as much as the steps before.
        var receipt = Receipt(isSegmented: reassembled != nil, isRetry: isRetry)
        let content = SignedContent(envelope.payload, by: envelope.sender)
        try admit(receipt) {
            receipt.isRepetition = $0.isRepetition(of: content)
            let refusal = receipt.isSegmented ? nil : $0.message(from: envelope.sender, isRepetition: receipt.isRepetition, at: now)
            if refusal != nil || envelope.kind == .registration { return refusal }
            return $0.message(envelope.kind, from: envelope.sender, at: now)
        }
        return (envelope, receipt, reassembled?.whole)
    }

    private func admit(_ receipt: Receipt, _ ask: (inout RateLimitTable) -> RateLimitTable.Refusal?) throws(Drop) {
        try limits.admit(isSegmented: receipt.isSegmented, isRetry: receipt.isRetry, ask)
    }

    /// The message that a segment completes.
    private func reassembled(
        by segment: SegmentMessage, in frame: PayloadFrame, sentAt: Timestamp, isRetry: Bool, at now: Timestamp
    ) throws(Drop) -> (bytes: [UInt8], whole: ReassembledMessage) {
        guard let signer = try? frame.signer() else { throw Drop(.droppedBadSignature) }
        let content = SignedContent(frame.data, by: signer)
        try limits.admit(isSegmented: true, isRetry: isRetry) {
            $0.message(from: signer, isRepetition: $0.isRepetition(of: content), at: now)
        }
        let isKnown = limits.charge(of: TopicTag(of: StatusTopics.query(KeyHash(of: signer))), at: now).standing == .known
        return try segments.message(completedBy: segment, from: signer, isKnown: isKnown, sentAt: sentAt, at: now)
    }

    private func command(
        in envelope: MetadataEnvelope, _ receipt: Receipt, sentAt timestamp: Timestamp, now: Timestamp
    ) throws(Drop) -> StatusCommand {
        switch envelope.kind {
        case .registration:
            let claim = registrations.claim(in: envelope, knownVersion: versions.version, isStored: isStored)
            guard let claim else { throw Drop(.droppedUnsealable) }
            // Not before: anyone can send other messages of the sender in an envelope of this type.
            try admit(receipt) {
                $0.message(MessageClass.registration, from: envelope.sender, isRepetition: receipt.isRepetition, at: now)
            }
            return .registration(claim)
        case .query:
            let query = try Drop.parsing(envelope.payload, PushNotificationQuery.init(parsing:))
            return .query(query, MessageOrigin(envelope))
        case .request:
            let request = try Drop.parsing(envelope.payload, PushNotificationRequest.init(parsing:))
            guard !request.messageID.isEmpty else { throw Drop(.droppedNoMessageID) }
            guard let expires = requests.expiry(of: timestamp, at: now) else { throw Drop(.droppedOldRequest) }
            return .request(request, MessageOrigin(envelope), expires: expires)
        case .registrationResponse, .queryResponse, .response:
            throw Drop(.droppedOtherKind)
        }
    }
}
