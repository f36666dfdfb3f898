import NodeAPI
import RateLimits
import StatusProtocol
import Core
import Waku
import WakuCrypto

/// Makes replies: signed by the node, encrypted to the recipient.
struct V01Replies: Sendable {
    let identity: PrivateKey

    /// - Parameters:
    ///   - recipient: the recipient; determines the topic.
    ///   - charge: the payer of its place among the answers that wait.
    func reply(
        _ type: V01.MessageType, _ payload: [UInt8], to recipient: PublicKey, _ question: Decoded<V01AddressedCommand>, for charge: Charge,
        expires: Bool
    ) -> Reply {
        reply(payload, question, for: charge, expires: expires) { [identity] now in
            let envelope = V01.Envelope.encode(type, payload: payload, signedBy: identity)
            return EnvelopeSealing.seal(envelope, to: .partitioned(recipient), wakuSigner: identity, at: now)
        }
    }

    /// - Parameters:
    ///   - error: nil is success.
    ///   - charge: the payer of its place among the answers that wait.
    func acknowledgement(
        _ error: V01.Acknowledgement.ErrorType?, under ackKey: V01.AckKey, _ question: Decoded<V01AddressedCommand>,
        for charge: Charge
    ) -> Reply {
        let payload = V01.Acknowledgement(id: ackKey.named, error: error).encoded()
        return reply(payload, question, for: charge, expires: true) { [identity] now in
            let envelope = V01.Envelope.encode(.acknowledgement, payload: payload, signedBy: identity)
            return [V01.seal(envelope, under: ackKey, wakuSigner: identity, at: now)]
        }
    }

    private func reply(
        _ payload: [UInt8], _ question: Decoded<V01AddressedCommand>, for charge: Charge, expires: Bool,
        seal: @escaping @Sendable (Timestamp) -> [WakuMessage]
    ) -> Reply {
        Reply(
            kind: question.kind, expires: expires, pubsubTopic: question.pubsubTopic, times: question.times, question: question.hash,
            charge: charge, byteCount: payload.count, seal: seal)
    }
}
