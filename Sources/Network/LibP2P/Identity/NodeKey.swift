public import WakuCrypto

/// The private key of a node, which determines its peer id. Keep it across restarts, since peers keep scores by peer id. Do not use a user's identity
/// key for it.
public struct NodeKey: Sendable, Redacted {
    /// The supported kinds of keys.
    public enum Algorithm: Sendable {
        /// The usual algorithm on Waku.
        case secp256k1
        /// The usual algorithm on other libp2p networks.
        case ed25519
    }

    private enum Secret {
        case secp256k1(PrivateKey)
        case ed25519(Ed25519PrivateKey)
    }

    private let secret: Secret
    /// The public key, which peers learn in the handshake.
    public let publicKey: NodePublicKey
    /// The peer id, derived from the public key.
    public let peerID: PeerID

    /// Uses a secp256k1 key.
    public init(_ key: PrivateKey) {
        self.init(.secp256k1(key), .secp256k1(key.publicKey))
    }

    /// Uses an Ed25519 key.
    public init(_ key: Ed25519PrivateKey) {
        self.init(.ed25519(key), .ed25519(key.publicKey))
    }

    private init(_ secret: Secret, _ publicKey: NodePublicKey) {
        self.secret = secret
        self.publicKey = publicKey
        peerID = PeerID(publicKey)
    }

    /// A new random key.
    public static func generate(_ algorithm: Algorithm = .secp256k1) -> NodeKey {
        switch algorithm {
        case .secp256k1: NodeKey(PrivateKey.generate())
        case .ed25519: NodeKey(Ed25519PrivateKey.generate())
        }
    }

    /// Decodes libp2p's protobuf `{1 type, 2 data}`. The data is 32 bytes for secp256k1, seed and public key for Ed25519, in the encoding of older
    /// nodes with the public key twice.
    ///
    /// - Throws: ``IdentityError/malformedKey``, ``IdentityError/unsupportedKey``
    public init(parsing bytes: some Collection<UInt8>) throws(IdentityError) {
        let (type, data) = try KeyMessage.parse(Array(bytes))
        switch type {
        case .secp256k1:
            guard let key = try? PrivateKey(bytes: data) else { throw .malformedKey }
            self.init(key)
        case .ed25519:
            let publicParts = data.dropFirst(Ed25519PrivateKey.byteCount)
            guard let key = Ed25519PrivateKey(seed: data.prefix(Ed25519PrivateKey.byteCount)),
                Array(publicParts) == key.publicKey.bytes || Array(publicParts) == key.publicKey.bytes + key.publicKey.bytes
            else { throw .malformedKey }
            self.init(key)
        }
    }

    /// Encodes the key as libp2p's protobuf, for a key file.
    public func encoded() -> SecretBytes {
        switch secret {
        case .secp256k1(let key): key.withBytes { SecretBytes(KeyMessage.encoded(.secp256k1, $0)) }
        case .ed25519(let key): key.seed.withBytes { SecretBytes(KeyMessage.encoded(.ed25519, $0 + key.publicKey.bytes)) }
        }
    }

    /// Signs a message, which is hashed as the algorithm requires: DER with secp256k1, 64 bytes with Ed25519.
    public func signature(of message: [UInt8]) -> [UInt8] {
        switch secret {
        case .secp256k1(let key): ECDSA.signature(of: SHA256.hash(message), by: key)
        case .ed25519(let key): key.signature(of: message)
        }
    }
}
