public import Waku
public import WakuCrypto

/// To whom a push message goes: the topic it is published on, and what it is encrypted with.
public enum Recipient: Sendable {
    /// The holder of a key, on a topic of theirs.
    case key(PublicKey, topic: String)
    /// Everyone who knows a topic.
    case topic(String, SymmetricKey)

    /// Where answers go, and requests.
    public static func partitioned(_ key: PublicKey) -> Recipient {
        .key(key, topic: StatusTopics.partitioned(key))
    }

    public static func personal(_ key: PublicKey) -> Recipient {
        .key(key, topic: StatusTopics.personal(key))
    }

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

/// Envelopes into Waku messages, and back.
public enum EnvelopeSealing {
    /// A larger envelope goes out in segments.
    public static let segmentByteLimit = 786_432

    /// The Waku message of an envelope: one, unless it has to be split. `wakuSigner` signs the Waku payload, which nobody reads unsigned.
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

    /// What a Waku message holds for the owner of `identity`, or for those who know one of the topic keys.
    ///
    /// - Throws: ``OpeningError``
    public static func open(
        _ message: WakuMessage, identity: PrivateKey?, topicKeys: [SymmetricKey] = []
    ) throws(OpeningError) -> OpenedPayload {
        let frame = try openFrame(message, identity: identity, topicKeys: topicKeys)
        guard let signer = frame.signer else { throw .unsigned }
        return OpenedPayload(data: frame.data, signer: signer)
    }

    /// As ``open(_:identity:topicKeys:)``, also when the Waku payload is not signed.
    ///
    /// - Throws: ``OpeningError``
    public static func openFrame(
        _ message: WakuMessage, identity: PrivateKey?, topicKeys: [SymmetricKey] = []
    ) throws(OpeningError) -> PayloadFrame {
        guard message.version == 1 else { throw .version }
        guard let plain = decrypt(message.payload, identity, topicKeys) else { throw .undecryptable }
        do { return try PayloadFrame(parsing: plain) } catch { throw .malformed }
    }

    private static func decrypt(_ payload: [UInt8], _ identity: PrivateKey?, _ topicKeys: [SymmetricKey]) -> [UInt8]? {
        if let identity, let plain = try? ECIES.open(payload, with: identity) { return plain }
        return topicKeys.lazy.compactMap { try? AESGCM.open(payload, key: $0, layout: .nonceLast) }.first
    }
}

/// A Waku payload that was decrypted, and whose signature holds.
public struct OpenedPayload: Sendable {
    public let data: [UInt8]
    /// Who signed the Waku payload. The real identity of whoever asks: neither stored nor logged.
    public let signer: PublicKey

    /// The segment that it is, if it is one.
    public var segment: SegmentMessage? { SegmentMessage(parsing: data) }
}

/// Why a Waku message is not for us. All of these are dropped and counted.
public enum OpeningError: Error, Hashable, Sendable, CaseIterable {
    /// Not encrypted by version 1.
    case version
    /// With none of our keys.
    case undecryptable
    case malformed
    case unsigned
}
