extension StatusGoVectors {
    public struct Primitives: Decodable, Sendable {
        public let hashes: [Digests]
        public let topics: [Topic]
        public let pbkdf2: [TopicKey]
        public let ecdh: [SharedKey]
        public let aesGcmEncrypt: [Sealed]
        public let grant: Grant
        public let pubsubTopics: PubsubTopics
        public let wakuMessageHash: [MessageHash]
        public let wakuPayloadV1: [Payload]
    }

    public struct Digests: Decodable, Sendable {
        public let inputUtf8: String
        public let keccak256: Hex
        public let shake25664: Hex

    }

    public struct TopicKey: Decodable, Sendable {
        public let password: String
        public let key: Hex
    }

    public struct SharedKey: Decodable, Sendable {
        /// Names of ``StatusGoVectors/keys``.
        public let `private`: String
        public let `public`: String
        /// Where `private` names none of them.
        public let privateKey: Hex?
        public let sharedKey: Hex
    }

    /// Nonce first.
    public struct Sealed: Decodable, Sendable {
        public let key: Hex
        public let nonce: Hex
        public let plaintext: Hex
        public let ciphertext: Hex
    }

    public struct Grant: Decodable, Sendable {
        public let client: String
        public let server: String
        public let accessToken: String
        public let material: Hex
        public let digest: Hex
        public let grant: Hex
    }

    public struct PubsubTopics: Decodable, Sendable {
        public let `default`: String
    }

    public struct MessageHash: Decodable, Sendable {
        public let pubsubTopic: String
        public let contentTopic: String
        public let payload: Hex
        public let timestamp: Int64
        public let proto: Hex
        public let hash: Hex
    }

    /// A version 1 payload: of the longest ones only lengths were recorded.
    public struct Payload: Decodable, Sendable, CustomStringConvertible {
        public enum Kind: String, Decodable, Sendable {
            case asymmetric = "Asymmetric"
            case symmetric = "Symmetric"
        }

        public let kind: Kind
        public let signed: Bool
        public let dataLength: Int
        public let encodedLength: Int
        public let symKey: Hex?
        public let data: Hex?
        public let plain: Hex?
        public let encoded: Hex?

        public var description: String { "\(kind) \(signed ? "signed" : "unsigned") \(dataLength) bytes" }
    }
}
