import CSecp256k1

extension PublicKey {
    /// Whether this key signed a digest of 32 bytes: `R(32) ‖ S(32)`, as in Ethereum node records. Both values of S are accepted.
    public func signed(_ digest: [UInt8], compact signature: some Collection<UInt8>) -> Bool {
        precondition(digest.count == 32)
        var parsed = secp256k1_ecdsa_signature()
        var normal = secp256k1_ecdsa_signature()
        var point = self.point
        let bytes = Array(signature)
        guard bytes.count == 64, secp256k1_ecdsa_signature_parse_compact(Secp256k1.context, &parsed, bytes) == 1 else { return false }
        _ = secp256k1_ecdsa_signature_normalize(Secp256k1.context, &normal, &parsed)
        return secp256k1_ecdsa_verify(Secp256k1.context, &normal, digest, &point) == 1
    }
}
