public import Core
public import Waku
public import WakuCrypto

extension V01 {
    /// An ApplicationMetadataMessage of version 0.1: like ``MetadataEnvelope``, but with other types, and possibly without a sender.
    public struct Envelope: Sendable {
        /// Determines the message type of ``payload``.
        public let type: MessageType
        /// Recovered from the signature; the signer of the Waku payload if the envelope is unsigned; nil if both are unsigned.
        public let sender: PublicKey?
        /// The encoded message, never empty.
        public let payload: [UInt8]

        public init(parsing bytes: [UInt8], wakuSigner: PublicKey?) throws(EnvelopeError) {
            let (type, payload, signer) = try MetadataEnvelope.open(bytes, as: MessageType.self)
            self.type = type
            self.payload = payload
            sender = signer ?? wakuSigner
        }

        /// - Parameter frame: see ``MetadataEnvelope/init(parsing:in:)``.
        public init(parsing bytes: [UInt8], in frame: PayloadFrame) throws(EnvelopeError) {
            let (type, payload, signer) = try MetadataEnvelope.open(bytes, as: MessageType.self)
            self.type = type
            self.payload = payload
            sender = if let signer { signer } else { try frame.envelopeSender() }
        }

        /// Encodes an envelope.
        ///
        /// - Parameter key: The sender's key; nil for an unsigned envelope.
        public static func encode(_ type: MessageType, payload: [UInt8], signedBy key: PrivateKey?) -> [UInt8] {
            MetadataEnvelope.encode(type: type.rawValue, payload: payload, signedBy: key)
        }
    }

    /// The Waku message of an envelope, encrypted with an acknowledgement key and addressed to the key's topic.
    ///
    /// - Parameter wakuSigner: The key that signs the Waku payload.
    public static func seal(_ envelope: [UInt8], under ackKey: AckKey, wakuSigner: PrivateKey, at now: Timestamp) -> WakuMessage {
        let frame = PayloadFrame.encode(envelope, signedBy: wakuSigner)
        return WakuMessage(
            payload: AESGCM.seal(frame, key: ackKey.key, layout: .nonceLast), contentTopic: ackKey.topic, timestamp: now)
    }
}
