import Foundation

/// Contact code advertisements published by status-go's clients, and status-go's handling of crafted ones. See `Vectors/README.md`.
package struct AdvertisementVectors: Decodable, Sendable {
    package static let recorded: AdvertisementVectors = recordedVectors("advertisements")

    /// Published by clients.
    package let cases: [Recording]
    /// Crafted to test a client.
    package let handling: [Recording]

    package struct Recording: Decodable, Sendable, CustomStringConvertible {
        package let name: String
        package let clientPrivateKey: Hex
        package let clientPublicKey: Hex
        package let installationId: String
        package let topic: Topic
        package let wakuMessage: WakuMessage
        package let payloadPlain: PayloadPlain
        package let protocolMessage: ProtocolMessage?
        package let applicationMetadata: Envelope
        package let advertisement: Advertisement
        package let listenerPrivateKey: Hex?
        package let pushClient: PushClientOutcome?

        package var description: String { name }
    }

    package struct Topic: Decodable, Sendable {
        package let string: String
        package let contentTopic: String
        package let symmetricKey: Hex
    }

    package struct WakuMessage: Decodable, Sendable {
        package let payload: Hex
        package let contentTopic: String
        package let timestamp: Int64
        package let version: UInt32
    }

    package struct PayloadPlain: Decodable, Sendable {
        package let data: Hex
        package let padding: Hex
        package let signature: Hex?
        package let signerPublicKey: Hex?
    }

    package struct ProtocolMessage: Decodable, Sendable {
        package let bytes: Hex
        package let installationId: String
        package let bundles: Int
        package let bundleContents: [Bundle]?
        package let publicMessage: Hex

        package struct Bundle: Decodable, Sendable {
            package let bytes: Hex
        }
    }

    package struct Envelope: Decodable, Sendable {
        package let bytes: Hex
        package let payload: Hex?
        package let signature: Hex
        package let signerPublicKey: Hex
        package let type: UInt32
    }

    package struct Advertisement: Decodable, Sendable {
        package let bytes: Hex
        package let chatIdentity: Hex?
        package let rows: [Row]
    }

    package struct Row: Decodable, Sendable {
        package let accessToken: String
        package let allowedKeyList: [Hex]
        package let grant: Hex
        package let installationId: String
        package let publicKey: Hex
        package let serverPublicKey: Hex
        package let version: UInt64
    }

    /// How status-go's push client handled it.
    package struct PushClientOutcome: Decodable, Sendable {
        package let error: String
        package let rowsSaved: [Saved]

        package struct Saved: Decodable, Sendable {
            package let accessToken: String
            package let installationId: String
            package let serverPublicKey: Hex
        }
    }
}
