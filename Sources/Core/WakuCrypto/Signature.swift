import CSecp256k1

/// A recoverable ECDSA signature over secp256k1: `R(32) ‖ S(32) ‖ V(1)`, V in 0–3. The signer's key can be recovered from it.
public struct Signature: Hashable, Sendable {
    /// Length of a signature in bytes.
    public static let byteCount = 65
    /// `R(32) ‖ S(32) ‖ V(1)`, big-endian. Whether R and S are in range is checked by ``signer(of:)``.
    public let bytes: [UInt8]

    /// - Throws: ``CryptoError/invalidSignature`` unless it is 65 bytes that end in 0 to 3.
    public init(parsing bytes: some Collection<UInt8>) throws(CryptoError) {
        self.bytes = Array(bytes)
        guard self.bytes.count == Self.byteCount, self.bytes[64] <= 3 else { throw .invalidSignature }
    }

    /// Signs a digest of 32 bytes, with a nonce by RFC 6979.
    public init(of digest: [UInt8], by key: PrivateKey) {
        precondition(digest.count == 32)
        var signature = secp256k1_ecdsa_recoverable_signature()
        var v: Int32 = 0
        var bytes = [UInt8](repeating: 0, count: Self.byteCount)
        key.secret.withBytes { secret in
            guard let secret = secret.baseAddress else { return }
            // Fails only for an invalid scalar, which PrivateKey rules out.
            require(secp256k1_ecdsa_sign_recoverable(Secp256k1.context, &signature, digest, secret, nil, nil))
        }
        secp256k1_ecdsa_recoverable_signature_serialize_compact(Secp256k1.context, &bytes, &v, &signature)
        bytes[64] = UInt8(v)
        self.bytes = bytes
    }

    /// Recovers the key that made this signature of the digest.
    ///
    /// - Throws: ``CryptoError/invalidSignature`` when there is none.
    public func signer(of digest: [UInt8]) throws(CryptoError) -> PublicKey {
        precondition(digest.count == 32)
        var signature = secp256k1_ecdsa_recoverable_signature()
        var point = secp256k1_pubkey()
        guard secp256k1_ecdsa_recoverable_signature_parse_compact(Secp256k1.context, &signature, bytes, Int32(bytes[64])) == 1,
            secp256k1_ecdsa_recover(Secp256k1.context, &point, &signature, digest) == 1
        else { throw .invalidSignature }
        return PublicKey(point: point)
    }
}
