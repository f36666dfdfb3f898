extension StatusGoVectors {
    package struct Primitives: Decodable, Sendable {
        package let hashes: [Digests]
        package let topics: [Topic]
        package let pbkdf2: [TopicKey]
        package let ecdh: [SharedKey]
        package let aesGcmEncrypt: [Sealed]
        package let grant: Grant
        package let pubsubTopics: PubsubTopics
        package let wakuMessageHash: [MessageHash]
        package let wakuPayloadV1: [Payload]
    }

    package struct Digests: Decodable, Sendable {
        package let inputUtf8: String
        package let keccak256: Hex
        package let shake25664: Hex

    }

    package struct TopicKey: Decodable, Sendable {
        package let password: String
        package let key: Hex
    }

    package struct SharedKey: Decodable, Sendable {
        /// Names of ``StatusGoVectors/keys``.
        package let `private`: String
        package let `public`: String
        /// Present when `private` names none of the keys.
        package let privateKey: Hex?
        package let sharedKey: Hex
    }

    /// Nonce first.
    package struct Sealed: Decodable, Sendable {
        package let key: Hex
        package let nonce: Hex
        package let plaintext: Hex
        package let ciphertext: Hex
    }

    package struct Grant: Decodable, Sendable {
        package let client: String
        package let server: String
        package let accessToken: String
        package let material: Hex
        package let digest: Hex
        package let grant: Hex
    }

    package struct PubsubTopics: Decodable, Sendable {
        package let `default`: String
    }

    package struct MessageHash: Decodable, Sendable {
        package let pubsubTopic: String
        package let contentTopic: String
        package let payload: Hex
        package let timestamp: Int64
        package let proto: Hex
        package let hash: Hex
    }

    /// A version 1 payload; for the longest ones only lengths were recorded.
    package struct Payload: Decodable, Sendable, CustomStringConvertible {
        package enum Kind: String, Decodable, Sendable {
            case asymmetric = "Asymmetric"
            case symmetric = "Symmetric"
        }

        package let kind: Kind
        package let signed: Bool
        package let dataLength: Int
        package let encodedLength: Int
        package let symKey: Hex?
        package let data: Hex?
        package let plain: Hex?
        package let encoded: Hex?

        package var description: String { "\(kind) \(signed ? "signed" : "unsigned") \(dataLength) bytes" }
    }
}
