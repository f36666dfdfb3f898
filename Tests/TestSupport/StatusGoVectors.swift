import Foundation
public import WakuCrypto

/// What status-go's own client and server sent and computed, `Vectors/README.md`.
public struct StatusGoVectors: Decodable, Sendable {
    public static let recorded = load()

    public let keys: [Key]
    public let primitives: Primitives
    public let flows: [Flow]

    /// A key pair, with everything that is derived from its public half.
    public struct Key: Decodable, Sendable, CustomStringConvertible {
        public let name: String
        public let privateKey: Hex
        public let publicKey: Hex
        public let compressed: Hex
        public let hashedPublicKey: Hex
        public let authorHash: Hex
        public let personalTopic: Topic
        public let partitionedTopic: Topic
        public let queryTopic: Topic
        public let contactCodeTopic: Topic

        public var description: String { name }

        public func pair() throws -> PrivateKey {
            try PrivateKey(bytes: privateKey.bytes)
        }
    }

    public struct Topic: Decodable, Sendable, CustomStringConvertible {
        public let string: String
        /// The first 4 bytes of Keccak-256.
        public let topic: Hex
        public let contentTopic: String

        public var description: String { string }
    }

    public struct NoSuchKey: Error {
        public let name: String
    }

    /// The pair of one of ``keys``.
    public func pair(_ name: String) throws -> PrivateKey {
        guard let key = keys.first(where: { $0.name == name }) else { throw NoSuchKey(name: name) }
        return try key.pair()
    }

    /// The pair of the one of ``keys`` with this public key.
    public func pair(publicKey: Hex) throws -> PrivateKey {
        guard let key = keys.first(where: { $0.publicKey == publicKey }) else { throw NoSuchKey(name: hexString(publicKey.bytes)) }
        return try key.pair()
    }

    /// Every recorded message, in and out, in order.
    public var messages: [Message] {
        flows.flatMap { $0.wireIn + ($0.wireOut ?? []) }
    }

    private static func load() -> StatusGoVectors {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        do {
            guard let file = Bundle.module.url(forResource: "status-go", withExtension: "json", subdirectory: "Vectors") else {
                preconditionFailure("the vectors are not among the resources of the tests")
            }
            return try decoder.decode(StatusGoVectors.self, from: Data(contentsOf: file))
        } catch {
            preconditionFailure("the vectors can't be read: \(error)")
        }
    }
}
