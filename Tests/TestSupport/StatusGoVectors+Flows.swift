package import Foundation

extension StatusGoVectors {
    /// Messages to the server, and its reactions. Each flow builds on the previous ones.
    package struct Flow: Decodable, Sendable, CustomStringConvertible {
        package let name: String
        package let note: String
        package let wireIn: [Message]
        package let wireOut: [Message]?
        package let gorush: [Post]?
        /// All rows of the server's table of registrations.
        package let serverRowsAfter: [ServerRow]?

        package var description: String { name }
    }

    package struct ServerRow: Decodable, Sendable {
        package let publicKey: Hex
        package let installationId: String
        package let version: Int64
        /// nil or empty: a tombstone.
        package let registration: Hex?
        package let registrationIsNull: Bool
    }

    /// A recorded message, layer by layer. Layers that could not be decoded were not recorded.
    package struct Message: Decodable, Sendable {
        package let pubsubTopic: String?
        package let contentTopic: String
        /// The number of answers received after this message, where there are several.
        package let answersSoFar: Int?
        package let wakuMessage: Waku?
        package let encryption: Encryption?
        package let payloadPlain: Plain?
        package let applicationMetadata: Envelope?
        package let segment: Hex?

        package let registration: SealedRegistration?
        package let query: Query?
        package let request: Request?
        package let registrationResponse: RegistrationResponse?
        package let queryResponse: QueryResponse?
        package let response: Response?
    }

    package struct Waku: Decodable, Sendable {
        package let payload: Hex
        package let proto: Hex?
        package let hash: Hex?
        package let timestamp: Int64?
        package let version: UInt32?
        package let ephemeral: Bool?
        package let meta: Hex?
    }

    package struct Encryption: Decodable, Sendable {
        /// `asymmetric` or `symmetric`.
        package let kind: String
        package let recipientPublicKey: Hex?
        /// The topic string from which the key is derived.
        package let password: String?
        package let key: Hex?
        package let nonce: Hex?
    }

    package struct Plain: Decodable, Sendable {
        package let bytes: Hex
        package let data: Hex
        package let padding: Hex
        package let signature: Hex
        package let signerPublicKey: Hex
    }

    package struct Envelope: Decodable, Sendable {
        package let bytes: Hex
        package let type: UInt32?
        package let payload: Hex?
        package let signature: Hex?
        /// Empty when unsigned.
        package let signerPublicKey: Hex?
        package let messageId: Hex?
    }

    package struct SealedRegistration: Decodable, Sendable {
        package let sharedKey: Hex
        /// Nonce first.
        package let ciphertext: Hex
        package let requestId: Hex
        package let plaintext: Hex?
        package let registration: Registration?
    }

    /// Fields without a value are missing.
    package struct Registration: Decodable, Sendable {
        package let tokenType: UInt32?
        package let deviceToken: String?
        package let installationId: String?
        package let accessToken: String?
        package let enabled: Bool?
        package let version: UInt64?
        package let allowedKeyList: [Data]?
        package let blockedChatList: [Data]?
        package let unregister: Bool?
        package let grant: Data?
        package let allowFromContactsOnly: Bool?
        package let apnTopic: String?
        package let blockMentions: Bool?
        package let allowedMentionsChatList: [Data]?
        package let mutedChatList: [Data]?
    }

    package struct Query: Decodable, Sendable {
        package let publicKeys: [Hex]?
    }

    package struct Request: Decodable, Sendable {
        package struct Entry: Decodable, Sendable {
            package let accessToken: String
            package let chatId: Hex
            package let publicKey: Hex
            package let installationId: String
            package let message: Hex
            package let type: Int32
            package let author: Hex
        }

        package let messageId: Hex
        package let requests: [Entry]?
    }

    package struct RegistrationResponse: Decodable, Sendable {
        package let success: Bool
        package let errorCode: UInt32
        package let requestId: Hex
    }

    package struct QueryResponse: Decodable, Sendable {
        package struct Row: Decodable, Sendable {
            package let accessToken: String
            package let installationId: String
            package let publicKey: Hex
            package let allowedKeyList: [Hex]?
            package let grant: Hex
            package let version: UInt64
            package let serverPublicKey: Hex
        }

        package let info: [Row]?
        package let messageId: Hex
        package let success: Bool
    }

    package struct Response: Decodable, Sendable {
        package struct Report: Decodable, Sendable {
            package let success: Bool
            package let errorCode: UInt32
            package let publicKey: Hex
            package let installationId: String
        }

        package let messageId: Hex
        package let reports: [Report]?
    }

    /// Requests to gorush.
    package struct Post: Decodable, Sendable {
        /// JSON.
        package let body: String
    }
}
