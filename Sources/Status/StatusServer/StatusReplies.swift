import NodeAPI
import NodeMetrics
import RateLimits
import StatusProtocol
import Core
import Waku
import WakuCrypto

/// Makes replies: signed by the node, encrypted to the recipient.
struct StatusReplies: Sendable {
    let identity: PrivateKey

    /// - Parameters:
    ///   - recipient: the recipient; determines the topic.
    ///   - pubsubTopic: the pubsub topic of the answered message.
    ///   - charge: the payer of its place among the answers that wait.
    func reply(
        _ kind: MessageKind, _ payload: [UInt8], to recipient: PublicKey, on pubsubTopic: PubsubTopic, times: MessageTimes?,
        question: MessageHash, charge: Charge
    ) -> Reply {
        Reply(
            kind: KindLabel(kind), expires: kind != .registrationResponse, pubsubTopic: pubsubTopic, times: times, question: question,
            charge: charge, byteCount: payload.count
        ) { [identity] now in
            let envelope = MetadataEnvelope.encode(kind, payload: payload, signedBy: identity)
            return EnvelopeSealing.seal(envelope.bytes, to: .partitioned(recipient), wakuSigner: identity, at: now)
        }
    }
}

extension KindLabel {
    /// The kind of the exchange that a message belongs to.
    init(_ kind: MessageKind) {
        switch kind {
        case .registration, .registrationResponse: self = .registration
        case .query, .queryResponse: self = .query
        case .request, .response: self = .request
        }
    }
}

extension ReportLabel {
    init(_ error: PushNotificationReport.ErrorType?) {
        switch error {
        case nil: self = .success
        case .unknown?: self = .unknownType
        case .wrongToken?: self = .wrongToken
        case .internalError?: self = .internalError
        case .notRegistered?: self = .notRegistered
        }
    }
}
