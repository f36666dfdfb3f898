import Core
package import StatusProtocol
import StatusRules
package import Waku
package import WakuCrypto

/// Version 0.1 without sockets, threads or files: the rules' decisions on single messages, with dictionaries for a store and a gorush that
/// accepts everything.
package struct PlainV01Node: Sendable {
    package struct Answer: Hashable, Sendable {
        package let type: V01.MessageType
        package let contentTopic: ContentTopic
        package let payload: [UInt8]

        package init(type: V01.MessageType, contentTopic: ContentTopic, payload: [UInt8]) {
            self.type = type
            self.contentTopic = contentTopic
            self.payload = payload
        }
    }

    private let identity: PrivateKey
    private let rules: V01.RegisterRules
    private var heads: [V01.KeyHash: V01.RecordHead] = [:]
    package private(set) var records: [V01.KeyHash: V01.Preferences] = [:]
    private var owners: [AccessToken: V01.KeyHash] = [:]
    /// The last owners of access tokens that no record has.
    private var formerOwners: [AccessToken: V01.KeyHash] = [:]
    private var accepted: Set<DeliveryID> = []
    private var acknowledged: [[UInt8]: V01.Acknowledgement.ErrorType?] = [:]
    package private(set) var notified: [PlainNode.Notified] = []

    package init(identity: PrivateKey) {
        self.identity = identity
        rules = V01.RegisterRules(server: identity.publicKey)
    }

    /// nil: no answer.
    package mutating func receive(_ message: WakuMessage) throws -> Answer? {
        guard message.contentTopic.tag == TopicTag(of: V01.serverTopic(identity.publicKey)),
            let frame = try? EnvelopeSealing.openFrame(message, identity: identity),
            let envelope = try? V01.Envelope(parsing: frame.data, in: frame)
        else { return nil }
        switch envelope.type {
        case .register:
            guard frame.signature != nil, let sender = envelope.sender, let register = try? V01.Register(parsing: envelope.payload),
                let claim = rules.claim(in: register, from: sender)
            else { return nil }
            return answer(.registrationResponse, take(claim).encoded(), to: sender)
        case .query:
            guard frame.signature != nil, let sender = envelope.sender, let query = try? V01.Query(parsing: envelope.payload) else {
                return nil
            }
            let rows = V01.QueryRules.registrants(in: query).flatMap { registrant in
                records[registrant].map { V01.QueryRules.rows(of: registrant, $0) } ?? []
            }
            return V01.QueryRules.answer(rows).map { answer(.queryResponse, $0.encoded(), to: sender) }
        case .request:
            guard let request = try? V01.Request(parsing: envelope.payload), V01.RequestRules.isComplete(request) else { return nil }
            let error = notify(request, key: envelope.payload)
            guard let ackKey = V01.AckKey(request.ackKey) else { return nil }
            return Answer(
                type: .acknowledgement, contentTopic: ackKey.topic,
                payload: V01.Acknowledgement(id: ackKey.named, error: error).encoded())
        default: return nil
        }
    }

    private func answer(_ type: V01.MessageType, _ payload: [UInt8], to recipient: PublicKey) -> Answer {
        Answer(type: type, contentTopic: ContentTopic(TopicTag(of: StatusTopics.partitioned(recipient))), payload: payload)
    }

    private mutating func take(_ claim: V01.RegisterClaim) -> V01.RegistrationResponse {
        let keyHash = claim.keyHash
        let owner = claim.accessToken.flatMap { owners[$0] ?? formerOwners[$0] }
        var error: V01.RegistrationResponse.ErrorType?
        switch rules.decide(claim, stored: heads[keyHash], isTokenTaken: owner.map { $0 != keyHash } ?? false) {
        case .keep: break
        case .refuse(let refusal): error = refusal
        case .end(let version): replace(keyHash, by: nil, version, claim.mark)
        case .store(let preferences, _): replace(keyHash, by: preferences, preferences.version, claim.mark)
        }
        return V01.RegistrationResponse(
            error: error, requestID: claim.requestID, preferences: error == .versionMismatch ? records[keyHash] : nil)
    }

    private mutating func replace(_ keyHash: V01.KeyHash, by record: V01.Preferences?, _ version: UInt64, _ mark: V01.RegisterMark) {
        if let old = records[keyHash] {
            owners[old.accessToken] = nil
            formerOwners[old.accessToken] = keyHash
        }
        records[keyHash] = record
        heads[keyHash] = V01.RecordHead(version: version, mark: mark)
        if let record { owners[record.accessToken] = keyHash }
    }

    private mutating func notify(_ request: V01.Request, key: [UInt8]) -> V01.Acknowledgement.ErrorType? {
        if let known = acknowledged[key] { return known }
        let decision = V01.RequestRules.decide(request) { token in
            owners[token].flatMap { owner in records[owner].map { V01.SelectedRecord(registrant: owner, preferences: $0) } }
        } delivery: {
            accepted.contains($0) ? .accepted : nil
        }
        for started in decision.started {
            accepted.insert(started.id)
            notified.append(PlainNode.Notified(token: started.device.token, platform: started.platform))
        }
        let error = V01.RequestDecision.error(hasBadToken: decision.hasBadToken, areAllTaken: !decision.isRefused)
        if !decision.isRefused { acknowledged[key] = error }
        return error
    }
}
