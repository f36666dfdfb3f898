public import Foundation

extension StatusGoVectors {
    /// Messages that came to the server, and what followed. Flows build on each other.
    public struct Flow: Decodable, Sendable, CustomStringConvertible {
        public let name: String
        public let note: String
        public let wireIn: [Message]
        public let wireOut: [Message]?
        public let gorush: [Post]?

        public var description: String { name }
    }

    /// A message as it travelled, layer by layer. Layers that could not be made sense of were not recorded.
    public struct Message: Decodable, Sendable {
        public let pubsubTopic: String?
        public let contentTopic: String
        /// How many answers had come after this message, where there are several.
        public let answersSoFar: Int?
        public let wakuMessage: Waku?
        public let encryption: Encryption?
        public let payloadPlain: Plain?
        public let applicationMetadata: Envelope?
        public let segment: Hex?

        public let registration: SealedRegistration?
        public let query: Query?
        public let request: Request?
        public let registrationResponse: RegistrationResponse?
        public let queryResponse: QueryResponse?
        public let response: Response?
    }

    public struct Waku: Decodable, Sendable {
        public let payload: Hex
        public let proto: Hex?
        public let hash: Hex?
        public let timestamp: Int64?
        public let version: UInt32?
        public let ephemeral: Bool?
        public let meta: Hex?
    }

    public struct Encryption: Decodable, Sendable {
        /// `asymmetric` or `symmetric`.
        public let kind: String
        public let recipientPublicKey: Hex?
        /// The topic string, and the key it gives.
        public let password: String?
        public let key: Hex?
        public let nonce: Hex?
    }

    public struct Plain: Decodable, Sendable {
        public let bytes: Hex
        public let data: Hex
        public let padding: Hex
        public let signature: Hex
        public let signerPublicKey: Hex
    }

    public struct Envelope: Decodable, Sendable {
        public let bytes: Hex
        public let type: UInt32?
        public let payload: Hex?
        public let signature: Hex?
        /// Empty when it is unsigned.
        public let signerPublicKey: Hex?
        public let messageId: Hex?
    }

    public struct SealedRegistration: Decodable, Sendable {
        public let sharedKey: Hex
        /// Nonce first.
        public let ciphertext: Hex
        public let requestId: Hex
        public let plaintext: Hex?
        public let registration: Registration?
    }

    /// Fields that were not set are missing.
    public struct Registration: Decodable, Sendable {
        public let tokenType: UInt32?
        public let deviceToken: String?
        public let installationId: String?
        public let accessToken: String?
        public let enabled: Bool?
        public let version: UInt64?
        public let allowedKeyList: [Data]?
        public let blockedChatList: [Data]?
        public let unregister: Bool?
        public let grant: Data?
        public let allowFromContactsOnly: Bool?
        public let apnTopic: String?
        public let blockMentions: Bool?
        public let allowedMentionsChatList: [Data]?
        public let mutedChatList: [Data]?
    }

    public struct Query: Decodable, Sendable {
        public let publicKeys: [Hex]?
    }

    public struct Request: Decodable, Sendable {
        public struct Entry: Decodable, Sendable {
            public let accessToken: String
            public let chatId: Hex
            public let publicKey: Hex
            public let installationId: String
            public let message: Hex
            public let type: Int32
            public let author: Hex
        }

        public let messageId: Hex
        public let requests: [Entry]?
    }

    public struct RegistrationResponse: Decodable, Sendable {
        public let success: Bool
        public let errorCode: UInt32
        public let requestId: Hex
    }

    public struct QueryResponse: Decodable, Sendable {
        public struct Row: Decodable, Sendable {
            public let accessToken: String
            public let installationId: String
            public let publicKey: Hex
            public let allowedKeyList: [Hex]?
            public let grant: Hex
            public let version: UInt64
            public let serverPublicKey: Hex
        }

        public let info: [Row]?
        public let messageId: Hex
        public let success: Bool
    }

    public struct Response: Decodable, Sendable {
        public struct Report: Decodable, Sendable {
            public let success: Bool
            public let errorCode: UInt32
            public let publicKey: Hex
            public let installationId: String
        }

        public let messageId: Hex
        public let reports: [Report]?
    }

    /// What gorush got.
    public struct Post: Decodable, Sendable {
        /// JSON.
        public let body: String
    }
}
