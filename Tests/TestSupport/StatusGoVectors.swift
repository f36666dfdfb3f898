import Foundation
package import WakuCrypto

/// Messages and values of status-go's client and server; see `Vectors/README.md`.
package struct StatusGoVectors: Decodable, Sendable {
    package static let recorded: StatusGoVectors = recordedVectors("status-go")

    package let keys: [Key]
    package let primitives: Primitives
    package let flows: [Flow]

    /// A key pair, and all values derived from its public half.
    package struct Key: Decodable, Sendable, CustomStringConvertible {
        package let name: String
        package let privateKey: Hex
        package let publicKey: Hex
        package let compressed: Hex
        package let hashedPublicKey: Hex
        package let authorHash: Hex
        package let personalTopic: Topic
        package let partitionedTopic: Topic
        package let queryTopic: Topic
        package let contactCodeTopic: Topic

        package var description: String { name }

        package func pair() throws -> PrivateKey {
            try PrivateKey(bytes: privateKey.bytes)
        }
    }

    package struct Topic: Decodable, Sendable, CustomStringConvertible {
        package let string: String
        /// The first 4 bytes of Keccak-256.
        package let topic: Hex
        package let contentTopic: String

        package var description: String { string }
    }

    /// The key pair with this name in ``keys``.
    package func pair(_ name: String) throws -> PrivateKey {
        guard let key = keys.first(where: { $0.name == name }) else { throw TestFailure("no key \(name)") }
        return try key.pair()
    }

    /// The key pair in ``keys`` with this public key.
    package func pair(publicKey: Hex) throws -> PrivateKey {
        guard let key = keys.first(where: { $0.publicKey == publicKey }) else { throw TestFailure("no key \(hexString(publicKey.bytes))") }
        return try key.pair()
    }

    /// All recorded messages in both directions, in order.
    package var messages: [Message] {
        flows.flatMap { $0.wireIn + ($0.wireOut ?? []) }
    }
}
