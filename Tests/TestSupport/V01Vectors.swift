import Foundation
package import WakuCrypto

/// Vectors for version 0.1 of Status' service, computed by an independent program; see `Vectors/README.md`.
package struct V01Vectors: Decodable, Sendable {
    package static let recorded: V01Vectors = recordedVectors("status-v0.1")

    package let keys: [Key]
    package let hashes: [Hash]
    package let chats: [Chat]
    package let sealedTokens: [SealedToken]
    package let registers: [Register]
    package let registrationResponses: [RegistrationResponse]
    package let queries: [Query]
    package let queryResponses: [QueryResponse]
    package let requests: [Request]
    package let acknowledgements: [Acknowledgement]
    package let advertisements: [Advertisement]
    package let ackKeys: [AckKey]
    package let unusableAckKeys: [Hex]
    package let envelopes: [Envelope]
    package let wakuPayloads: [WakuPayload]

    package struct Key: Decodable, Sendable, CustomStringConvertible {
        package let name: String
        package let privateKey, publicKey, compressed, keyHash: Hex
        package let serverTopic, contentTopic: String
        package var description: String { name }
    }

    package struct Hash: Decodable, Sendable {
        package let input, sha3, keccak: Hex
    }

    package struct Chat: Decodable, Sendable {
        package let id: String
        package let hash: Hex
    }

    package struct SealedToken: Decodable, Sendable {
        package let owner, contact, token: String
        package let sealed: Hex
    }

    package struct Filters: Decodable, Sendable {
        package let enabled: Bool
        package let allowedKeyList, blockedChatList: [Hex]
    }

    package struct Device: Decodable, Sendable {
        package let tokenType: UInt32
        package let token, installationId: String
        package let filters: Filters?
    }

    package struct Preferences: Decodable, Sendable {
        package let devices: [Device]
        package let version: UInt64
        package let unregister: Bool
        package let accessToken: String
    }

    package struct Register: Decodable, Sendable, CustomStringConvertible {
        package let name, account, server: String
        package let preferences: Preferences
        package let payload, signature, encoded, requestId: Hex
        package var description: String { name }
    }

    package struct RegistrationResponse: Decodable, Sendable {
        package let error: UInt32?
        package let requestId: Hex
        package let preferences: Preferences?
        package let encoded: Hex
    }

    package struct Query: Decodable, Sendable {
        package let publicKeys: [Hex]
        package let encoded: Hex
    }

    package struct QueryInfo: Decodable, Sendable {
        package let accessToken, installationId: String
        package let publicKey: Hex
        package let encryptedAccessTokens: [Hex]
    }

    package struct QueryResponse: Decodable, Sendable {
        package let info: [QueryInfo]
        package let encoded: Hex
    }

    package struct Entry: Decodable, Sendable {
        package let accessToken: String
        package let chatId: Hex
    }

    package struct Request: Decodable, Sendable {
        package let requests: [Entry]
        package let message, ackKey, encoded: Hex
        package let messageId: String
    }

    package struct Acknowledgement: Decodable, Sendable {
        package let id: Hex
        package let error: UInt32?
        package let encoded: Hex
    }

    package struct AdvertisementInfo: Decodable, Sendable {
        package let publicKey: Hex
        package let accessToken, installationId: String
    }

    package struct Advertisement: Decodable, Sendable {
        package let info: [AdvertisementInfo]
        package let encoded: Hex
    }

    package struct AckKey: Decodable, Sendable {
        package let named, secret: Hex
        package let contentTopic: String
    }

    package struct Envelope: Decodable, Sendable {
        package let type: UInt32
        package let sender: String?
        package let payload, encoded: Hex
    }

    package struct WakuPayload: Decodable, Sendable, CustomStringConvertible {
        package let name, contentTopic: String
        package let recipient: String?
        package let ackKey: Hex?
        package let signer: String?
        package let data, payload: Hex
        package var description: String { name }
    }

    package func pair(_ name: String) throws -> PrivateKey {
        guard let key = keys.first(where: { $0.name == name }) else { throw TestFailure("no key \(name)") }
        return try PrivateKey(bytes: key.privateKey.bytes)
    }
}
