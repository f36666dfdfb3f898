import CSecp256k1

/// ECDSA over secp256k1 in its common form: DER of R and S, without the recovery id.
public enum ECDSA {
    /// DER of a signature of a digest of 32 bytes, with a nonce by RFC 6979 and the lower S.
    public static func signature(of digest: [UInt8], by key: PrivateKey) -> [UInt8] {
        precondition(digest.count == 32)
        var signature = secp256k1_ecdsa_signature()
        key.secret.withBytes { secret in
            guard let secret = secret.baseAddress else { return }
            // Fails only for an invalid scalar, which PrivateKey rules out.
            require(secp256k1_ecdsa_sign(Secp256k1.context, &signature, digest, secret, nil, nil))
        }
        // Two integers of at most 33 bytes, each with a header of 2 bytes, and a header of 2 bytes for the sequence.
        return [UInt8](unsafeUninitializedCapacity: 72) { buffer, initialized in
            initialized = buffer.count
            guard let start = buffer.baseAddress else { return }
            require(secp256k1_ecdsa_signature_serialize_der(Secp256k1.context, start, &initialized, &signature))
        }
    }

    /// Accepts either S: libsecp256k1 by itself rejects the higher one.
    public static func isValid(_ der: [UInt8], of digest: [UInt8], by key: PublicKey) -> Bool {
        var signature = secp256k1_ecdsa_signature()
        return secp256k1_ecdsa_signature_parse_der(Secp256k1.context, &signature, der, der.count) == 1
            && isValid(signature, of: digest, by: key)
    }

    fileprivate static func isValid(_ signature: secp256k1_ecdsa_signature, of digest: [UInt8], by key: PublicKey) -> Bool {
        precondition(digest.count == 32)
        var (signature, normalized, point) = (signature, secp256k1_ecdsa_signature(), key.point)
        _ = secp256k1_ecdsa_signature_normalize(Secp256k1.context, &normalized, &signature)
        return secp256k1_ecdsa_verify(Secp256k1.context, &normalized, digest, &point) == 1
    }
}

extension PublicKey {
    /// Whether this key signed a digest of 32 bytes: `R(32) ‖ S(32)`, as in Ethereum node records. Both values of S are accepted.
    public func signed(_ digest: [UInt8], compact signature: some Collection<UInt8>) -> Bool {
        let bytes = Array(signature)
        var parsed = secp256k1_ecdsa_signature()
        return bytes.count == 64 && secp256k1_ecdsa_signature_parse_compact(Secp256k1.context, &parsed, bytes) == 1
            && ECDSA.isValid(parsed, of: digest, by: self)
    }
}
