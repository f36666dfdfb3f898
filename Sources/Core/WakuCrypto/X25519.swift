import COpenSSL

/// An X25519 key (RFC 7748), with its point. The scalar is wiped when freed, and never printed.
public struct X25519PrivateKey: Sendable, Redacted {
    /// Length of a private key, a public key and a shared secret in bytes.
    public static let byteCount = 32
    private let secret: SecretBytes
    /// The u coordinate of RFC 7748, 32 bytes, little-endian.
    public let publicKey: [UInt8]

    /// A key with a random scalar.
    public static func generate() -> X25519PrivateKey {
        X25519PrivateKey(SecretBytes.random(count: byteCount))
    }

    /// nil unless there are 32 bytes, all of which are valid keys.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        self.init(SecretBytes(bytes))
    }

    private init(_ secret: SecretBytes) {
        self.secret = secret
        let key = EVPKey(private: secret, algorithm: "X25519")
        publicKey = key.rawPublicKey(byteCount: Self.byteCount)
    }

    /// The Diffie–Hellman coordinate, 32 bytes, without a key derivation.
    ///
    /// - Throws: ``CryptoError/invalidKey`` unless the peer's key is 32 bytes and not a point of small order.
    public func sharedSecret(with other: some Collection<UInt8>) throws(CryptoError) -> SecretBytes {
        guard other.count == Self.byteCount, let peer = EVPKey(public: Array(other), algorithm: "X25519") else { throw .invalidKey }
        let own = EVPKey(private: secret, algorithm: "X25519")
        let context = EVP_PKEY_CTX_new_from_pkey(nil, own.pointer, nil)
        defer { EVP_PKEY_CTX_free(context) }
        require(EVP_PKEY_derive_init(context))
        // The peer's key is checked only by the derivation, which refuses a result of zeros.
        guard EVP_PKEY_derive_set_peer(context, peer.pointer) == 1 else { throw .invalidKey }
        return try SecretBytes(count: Self.byteCount) { output throws(CryptoError) in
            var count = output.count
            guard EVP_PKEY_derive(context, output.assumingMemoryBound(to: UInt8.self).baseAddress, &count) == 1 else { throw .invalidKey }
        }
    }
}
