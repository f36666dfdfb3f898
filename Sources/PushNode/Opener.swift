import NodeMetrics
import ProtobufWire
import PushServer
import StatusProtocol
import Synchronization
import Waku
import WakuCrypto

/// From a Waku message to what it asks for: decrypts, checks signatures, unseals and parses. Needs nothing stored, and runs on any core.
final class Opener: Sendable {
    private let identity: PrivateKey
    private let registrations: RegistrationRules
    private let requests: RequestRules
    private let versions: RecentVersions
    private let gate: Gate
    private let assembler = Mutex(SegmentAssembler())

    init(identity: PrivateKey, registrations: RegistrationRules, requests: RequestRules, versions: RecentVersions, gate: Gate) {
        self.identity = identity
        self.registrations = registrations
        self.requests = requests
        self.versions = versions
        self.gate = gate
    }

    func open(_ incoming: Incoming, at now: Timestamp) throws(Drop) -> Work {
        let envelope = try envelope(in: incoming, at: now)
        let message = incoming.received
        return Work(
            task: try task(in: envelope, sentAt: message.message.timestamp, now: now), hash: incoming.hash,
            pubsubTopic: message.pubsubTopic, cost: incoming.cost, times: incoming.times)
    }

    private func envelope(in incoming: Incoming, at now: Timestamp) throws(Drop) -> MetadataEnvelope {
        let payload: OpenedPayload
        do throws(OpeningError) {
            payload = try EnvelopeSealing.open(
                incoming.received.message, identity: incoming.isOwnTopic ? identity : nil, topicKeys: incoming.topicKeys)
        } catch {
            throw Drop(error)
        }
        // The signature of the envelope, the keys and grants behind it cost several times what is done by now.
        try gate.admit { $0.message(from: payload.signer, at: now) }
        var bytes = payload.data
        if let segment = payload.segment {
            guard let whole = assembler.withLock({ $0.add(segment, from: payload.signer, at: now) }) else {
                throw Drop(.segment)
            }
            bytes = whole
        }
        let envelope: MetadataEnvelope
        do throws(EnvelopeError) {
            envelope = try MetadataEnvelope(parsing: bytes, wakuSigner: payload.signer)
        } catch {
            throw Drop(error)
        }
        try gate.admit { $0.message(envelope.kind, from: envelope.sender, at: now) }
        return envelope
    }

    private func task(in envelope: MetadataEnvelope, sentAt timestamp: Timestamp, now: Timestamp) throws(Drop) -> Work.Task {
        switch envelope.kind {
        case .registration:
            guard let claim = registrations.claim(in: envelope, knownVersion: versions.version) else { throw Drop(.droppedUnsealable) }
            return .registration(claim)
        case .query:
            return .query(try parse { () throws(ProtobufError) in try PushNotificationQuery(parsing: envelope.payload) }, envelope)
        case .request:
            let request = try parse { () throws(ProtobufError) in try PushNotificationRequest(parsing: envelope.payload) }
            guard !request.messageID.isEmpty else { throw Drop(.droppedNoMessageID) }
            guard let expires = requests.expiry(of: timestamp, at: now) else { throw Drop(.droppedOldRequest) }
            return .request(request, envelope, expires: expires)
        case .registrationResponse, .queryResponse, .response:
            throw Drop(.droppedOtherKind)
        }
    }

    private func parse<T>(_ parsing: () throws(ProtobufError) -> T) throws(Drop) -> T {
        do throws(ProtobufError) { return try parsing() } catch { throw Drop(error) }
    }
}

/// A message on a topic of ours, with the keys that may open it.
struct Incoming: Sendable {
    let received: ReceivedMessage
    let hash: MessageHash
    /// It may be encrypted to the node's own key.
    let isOwnTopic: Bool
    let times: MessageTimes
    var topicKeys: [SymmetricKey] = []
    /// Its topic's keys are not at hand: to be derived if nothing else opens it.
    var laterTag: TopicTag?

    /// The room that it takes, in units of 4 KiB.
    var cost: Int { 1 + received.message.payload.count / 4096 }
}
