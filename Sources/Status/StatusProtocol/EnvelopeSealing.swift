public import Core
public import Waku
public import WakuCrypto

/// The recipient of a push message: determines topic and encryption.
public enum Recipient: Sendable {
    /// The holder of a key, on one of its topics.
    case key(PublicKey, topic: String)
    /// All parties that know a topic.
    case topic(String, SymmetricKey)

    /// The holder of a key, on the topic of requests and answers.
    public static func partitioned(_ key: PublicKey) -> Recipient {
        .key(key, topic: StatusTopics.partitioned(key))
    }

    /// The holder of a key, on the topic on which deployed servers receive registrations.
    public static func personal(_ key: PublicKey) -> Recipient {
        .key(key, topic: StatusTopics.personal(key))
    }

    /// All parties that know a topic string. Derives the topic's key, which takes about 7 ms of CPU time: cache the result for repeated use.
    public static func topic(_ string: String) -> Recipient {
        .topic(string, KeyDerivation.topicKey(string))
    }

    var topicString: String {
        switch self {
        case .key(_, let topic), .topic(let topic, _): topic
        }
    }

    func seal(_ frame: [UInt8]) -> [UInt8] {
        switch self {
        case .key(let key, _): ECIES.seal(frame, to: key)
        case .topic(_, let key): AESGCM.seal(frame, key: key, layout: .nonceLast)
        }
    }
}

/// Converts envelopes to Waku messages and back.
public enum EnvelopeSealing {
    /// Larger envelopes are sent in segments.
    public static let segmentByteLimit = 786_432

    /// The Waku messages of an envelope: one, unless it must be split. `wakuSigner` signs the Waku payload, because receivers drop unsigned ones.
    public static func seal(
        _ envelope: [UInt8], to recipient: Recipient, wakuSigner: PrivateKey, at now: Timestamp
    ) -> [WakuMessage] {
        let contentTopic = ContentTopic(TopicTag(of: recipient.topicString))
        return parts(of: envelope).map { part in
            let frame = PayloadFrame.encode(part, signedBy: wakuSigner)
            return WakuMessage(payload: recipient.seal(frame), contentTopic: contentTopic, timestamp: now)
        }
    }

    private static func parts(of envelope: [UInt8]) -> [[UInt8]] {
        guard envelope.count > segmentByteLimit else { return [envelope] }
        let hash = Keccak256.hash(envelope)
        let starts = Array(stride(from: 0, to: envelope.count, by: segmentByteLimit))
        return starts.enumerated().map { index, start in
            let payload = Array(envelope[start..<min(start + segmentByteLimit, envelope.count)])
            return SegmentMessage(wholeHash: hash, index: index, count: starts.count, payload: payload).encoded()
        }
    }

    /// Decrypts a Waku message with `identity` or one of the topic keys.
    ///
    /// The message's version does not matter: the message hash does not cover it, so a copy with another version counts as the message itself for
    /// relays, stores, and everything that leaves out repetitions, and is often all that arrives.
    public static func open(
        _ message: WakuMessage, identity: PrivateKey?, topicKeys: [SymmetricKey] = []
    ) throws(OpeningError) -> OpenedPayload {
        let frame = try openFrame(message, identity: identity, topicKeys: topicKeys)
        do {
            guard let signer = try frame.signer() else { throw OpeningError.unsigned }
            return OpenedPayload(data: frame.data, signer: signer)
        } catch let error as OpeningError {
            throw error
        } catch {
            throw .malformed
        }
    }

    /// Like ``open(_:identity:topicKeys:)``, but accepts unsigned Waku payloads as well, and does not recover the signer.
    public static func openFrame(
        _ message: WakuMessage, identity: PrivateKey?, topicKeys: [SymmetricKey] = []
    ) throws(OpeningError) -> PayloadFrame {
        guard let plain = decrypt(message.payload, identity: identity, topicKeys: topicKeys) else { throw .undecryptable }
        do { return try PayloadFrame(parsing: plain) } catch { throw .malformed }
    }

    private static func decrypt(_ payload: [UInt8], identity: PrivateKey?, topicKeys: [SymmetricKey]) -> [UInt8]? {
        if let identity, let plain = try? ECIES.open(payload, with: identity) { return plain }
        return topicKeys.lazy.compactMap { try? AESGCM.open(payload, key: $0, layout: .nonceLast) }.first
    }
}

/// A decrypted Waku payload with a valid signature.
public struct OpenedPayload: Sendable {
    /// An envelope, a segment of one, or a ``ProtocolMessage``.
    public let data: [UInt8]
    /// The signer of the Waku payload: for queries and requests the sender's real identity, which is neither stored nor logged.
    public let signer: PublicKey

    /// The segment in the payload; nil if the payload is not a segment.
    public var segment: SegmentMessage? { SegmentMessage(parsing: data) }
}

/// Why a Waku message can't be opened. All of these are dropped and counted.
public enum OpeningError: Error, Hashable, Sendable, CaseIterable {
    /// None of the keys decrypts it.
    case undecryptable
    /// No Waku payload, or a malformed signature.
    case malformed
    /// The Waku payload has no signature.
    case unsigned
}
