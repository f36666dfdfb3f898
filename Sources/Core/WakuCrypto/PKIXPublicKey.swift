import COpenSSL

/// An RSA (PKCS #1 v1.5) or ECDSA key in X.509 form, which verifies signatures over SHA-256.
public struct PKIXPublicKey: Hashable, Sendable {
    /// Enough for RSA with 8,192 bits: larger keys only cost time.
    public static let byteLimit = 1_100

    /// Key types, with libcrypto's names as raw values.
    public enum Algorithm: String, Sendable {
        /// 2,048 to 8,192 bits.
        case rsa = "RSA"
        /// Any curve that libcrypto knows.
        case ecdsa = "EC"
    }

    /// The key's type, which the encoding must match.
    public let algorithm: Algorithm
    /// The DER encoding of a SubjectPublicKeyInfo.
    public let bytes: [UInt8]

    /// - Throws: ``CryptoError/invalidKey``
    public init(parsing bytes: some Collection<UInt8>, algorithm: Algorithm) throws(CryptoError) {
        self.bytes = Array(bytes)
        self.algorithm = algorithm
        _ = try key()
    }

    /// Whether the signature of SHA-256(message) is by this key: PKCS #1 v1.5 for RSA, the DER encoding of (r, s) for ECDSA.
    public func isValid(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        guard let key = try? key() else { return false }
        return key.isValid(signature, of: message, digest: "SHA256")
    }

    private func key() throws(CryptoError) -> EVPKey {
        guard bytes.count <= Self.byteLimit else { throw .invalidKey }
        let parsed = bytes.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            var start = bytes.baseAddress
            let key = d2i_PUBKEY(nil, &start, bytes.count)
            // Trailing bytes are not allowed.
            guard start == bytes.baseAddress.map({ $0 + bytes.count }) else {
                EVP_PKEY_free(key)
                return nil
            }
            return key
        }
        ERR_clear_error()
        guard let key = EVPKey(taking: parsed), EVP_PKEY_is_a(key.pointer, algorithm.rawValue) == 1 else { throw .invalidKey }
        if algorithm == .rsa {
            guard (2_048...8_192).contains(EVP_PKEY_get_bits(key.pointer)) else { throw .invalidKey }
        }
        return key
    }
}
