/// A key that signs by Ed25519 (RFC 8032). The seed is wiped when freed, and never printed.
public struct Ed25519PrivateKey: Sendable, Redacted {
    /// Length of the seed in bytes.
    public static let byteCount = 32
    /// The private key of RFC 8032, 32 bytes.
    public let seed: SecretBytes
    /// Derived from the seed, once.
    public let publicKey: Ed25519PublicKey

    /// A key with a random seed.
    public static func generate() -> Ed25519PrivateKey {
        Ed25519PrivateKey(SecretBytes.random(count: byteCount))
    }

    /// nil unless there are 32 bytes, all of which are valid seeds.
    public init?(seed: some Collection<UInt8>) {
        guard seed.count == Self.byteCount else { return nil }
        self.init(SecretBytes(seed))
    }

    private init(_ seed: SecretBytes) {
        self.seed = seed
        publicKey = Ed25519PublicKey(trusted: EVPKey(private: seed, algorithm: "ED25519").rawPublicKey(byteCount: 32))
    }

    /// Signs a message, which need not be hashed before. Returns 64 bytes.
    public func signature(of message: [UInt8]) -> [UInt8] {
        EVPKey(private: seed, algorithm: "ED25519").signature(of: message, digest: nil, byteCount: Ed25519PublicKey.signatureByteCount)
    }
}

/// An Ed25519 public key, 32 bytes.
public struct Ed25519PublicKey: Hashable, Sendable {
    /// Length of a public key in bytes.
    public static let byteCount = 32
    /// Length of a signature in bytes.
    public static let signatureByteCount = 64
    /// The encoded point of RFC 8032: the y coordinate, little-endian, with the sign of x in the highest bit.
    public let bytes: [UInt8]

    /// Whether it is a valid point is checked only when a signature is verified.
    ///
    /// - Throws: ``CryptoError/invalidKey`` unless there are 32 bytes.
    public init(parsing bytes: some Collection<UInt8>) throws(CryptoError) {
        guard bytes.count == Self.byteCount else { throw .invalidKey }
        self.bytes = Array(bytes)
    }

    init(trusted bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Whether the signature is by this key. False for a length other than 64 bytes, and for a key that is not a valid point.
    public func isValid(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        guard signature.count == Self.signatureByteCount, let key = EVPKey(public: bytes, algorithm: "ED25519") else { return false }
        return key.isValid(signature, of: message, digest: nil)
    }
}
