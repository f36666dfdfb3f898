import CSecp256k1
import Foundation

/// A scalar of secp256k1, with its point. The scalar is wiped when freed, and never printed.
public struct PrivateKey: Sendable, Redacted {
    /// Length of the scalar in bytes.
    public static let byteCount = 32
    let secret: SecretBytes
    /// The scalar times the generator of the curve. Computed once.
    public let publicKey: PublicKey

    /// - Throws: ``CryptoError/invalidKey`` unless it is 32 bytes, above 0 and below the order of the curve.
    public init(bytes: some Collection<UInt8>) throws(CryptoError) {
        try self.init(SecretBytes(bytes))
    }

    init(_ secret: SecretBytes) throws(CryptoError) {
        guard secret.count == Self.byteCount else { throw .invalidKey }
        var point = secp256k1_pubkey()
        let valid = secret.withBytes { secret -> Bool in
            guard let secret = secret.baseAddress else { return false }
            return secp256k1_ec_pubkey_create(Secp256k1.context, &point, secret) == 1
        }
        guard valid else { throw .invalidKey }
        self.secret = secret
        publicKey = PublicKey(point: point)
    }

    /// A random key.
    public static func generate() -> PrivateKey {
        while true {
            // All but one in 2^128 random values are in range.
            if let key = try? PrivateKey(SecretBytes.random(count: byteCount)) { return key }
        }
    }

    /// The X coordinate of the Diffie–Hellman point, 32 bytes, without a key derivation.
    public func sharedSecret(with other: PublicKey) -> SecretBytes {
        var point = other.point
        return SecretBytes(count: 32) { output in
            secret.withBytes { secret in
                guard let secret = secret.baseAddress, let output = output.baseAddress else { return }
                let copyX: secp256k1_ecdh_hash_function = { output, x, _, _ in
                    guard let output, let x else { return 0 }
                    memcpy(output, x, 32)
                    return 1
                }
                // Fails only for an invalid scalar, which this type rules out.
                require(secp256k1_ecdh(Secp256k1.context, output.assumingMemoryBound(to: UInt8.self), &point, secret, copyX, nil))
            }
        }
    }

    /// The shared AES-256-GCM key of two key holders, for registrations and entries of allowed_key_list.
    public func sharedKey(with other: PublicKey) -> SymmetricKey {
        SymmetricKey(sharedSecret(with: other))
    }

    /// A derived key for one purpose, by HKDF-SHA256.
    public func derivedKey(purpose: String) -> SymmetricKey {
        secret.withBytes { secret in
            SymmetricKey(KeyDerivation.hkdf(secret, purpose: Array(purpose.utf8), byteCount: SymmetricKey.byteCount))
        }
    }

    /// The scalar, for the key file.
    public func withBytes<R, E: Error>(_ body: (UnsafeBufferPointer<UInt8>) throws(E) -> R) throws(E) -> R {
        try secret.withBytes(body)
    }
}
