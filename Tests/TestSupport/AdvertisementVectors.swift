import Foundation

/// Contact code advertisements that status-go's clients published, and what status-go makes of crafted ones. `Vectors/README.md`.
public struct AdvertisementVectors: Decodable, Sendable {
    public static let recorded = load()

    /// Published by clients.
    public let cases: [Recording]
    /// Made for a client to read.
    public let handling: [Recording]

    public struct Recording: Decodable, Sendable, CustomStringConvertible {
        public let name: String
        public let clientPrivateKey: Hex
        public let clientPublicKey: Hex
        public let installationId: String
        public let serverPublicKeys: [Hex]
        public let topic: Topic
        public let wakuMessage: WakuMessage
        public let payloadPlain: PayloadPlain
        public let protocolMessage: ProtocolMessage?
        public let applicationMetadata: Envelope
        public let advertisement: Advertisement
        public let listenerPrivateKey: Hex?
        public let pushClient: PushClientOutcome?

        public var description: String { name }
    }

    public struct Topic: Decodable, Sendable {
        public let string: String
        public let contentTopic: String
        public let symmetricKey: Hex
    }

    public struct WakuMessage: Decodable, Sendable {
        public let payload: Hex
        public let contentTopic: String
        public let timestamp: Int64
        public let version: UInt32
    }

    public struct PayloadPlain: Decodable, Sendable {
        public let data: Hex
        public let padding: Hex
        public let signature: Hex?
        public let signerPublicKey: Hex?
    }

    public struct ProtocolMessage: Decodable, Sendable {
        public let bytes: Hex
        public let installationId: String
        public let bundles: Int
        public let bundleContents: [Bundle]?
        public let publicMessage: Hex

        public struct Bundle: Decodable, Sendable {
            public let bytes: Hex
        }
    }

    public struct Envelope: Decodable, Sendable {
        public let bytes: Hex
        public let payload: Hex?
        public let signature: Hex
        public let signerPublicKey: Hex
        public let type: UInt32
    }

    public struct Advertisement: Decodable, Sendable {
        public let bytes: Hex
        public let chatIdentity: Hex?
        public let rows: [Row]
    }

    public struct Row: Decodable, Sendable {
        public let accessToken: String
        public let allowedKeyList: [Hex]
        public let grant: Hex
        public let installationId: String
        public let publicKey: Hex
        public let serverPublicKey: Hex
        public let version: UInt64
    }

    /// What status-go's push client made of it.
    public struct PushClientOutcome: Decodable, Sendable {
        public let error: String
        public let rowsSaved: [Saved]

        public struct Saved: Decodable, Sendable {
            public let accessToken: String
            public let installationId: String
            public let serverPublicKey: Hex
        }
    }

    private static func load() -> AdvertisementVectors {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        do {
            guard let file = Bundle.module.url(forResource: "advertisements", withExtension: "json", subdirectory: "Vectors") else {
                preconditionFailure("the advertisements are not among the resources of the tests")
            }
            return try decoder.decode(AdvertisementVectors.self, from: Data(contentsOf: file))
        } catch {
            preconditionFailure("the advertisements can't be read: \(error)")
        }
    }
}
