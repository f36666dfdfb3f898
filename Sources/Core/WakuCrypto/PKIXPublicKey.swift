import COpenSSL

/// An RSA (PKCS #1 v1.5) or ECDSA key in X.509 form, which verifies signatures over SHA-256.
public struct PKIXPublicKey: Hashable, Sendable {
    /// Enough for RSA with 8,192 bits: larger keys only cost time.
    public static let byteLimit = 1_100

    /// Key types, with libcrypto's names as raw values.
    public enum Algorithm: String, Sendable {
        /// 2,048 to 8,192 bits, with an exponent below 2³².
        case rsa = "RSA"
        /// P-256, P-384 or P-521, by name, with an uncompressed point.
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

    /// The bytes before an RSA key, after the four of the outer length.
    private static let rsaHeader: [UInt8] = [0x30, 13, 6, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 13, 1, 1, 1, 5, 0]
    /// For each curve, the bytes before the coordinates of the point, and the length of these.
    private static let ecdsaForms: [(header: [UInt8], byteCount: Int)] = {
        let type: [UInt8] = [6, 7, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1]
        return [
            ([0x30, 89, 0x30, 19] + type + [6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7, 3, 66, 0, 4], 64),
            ([0x30, 118, 0x30, 16] + type + [6, 5, 0x2B, 0x81, 4, 0, 34, 3, 98, 0, 4], 96),
            ([0x30, 0x81, 155, 0x30, 16] + type + [6, 5, 0x2B, 0x81, 4, 0, 35, 3, 0x81, 134, 0, 4], 132),
        ]
    }()

    /// Whether these may be such a key: libcrypto would parse others, too, some of which take it a fraction of a second. That is how long it takes to find
    /// the point of a compressed key on a curve of the sender's own.
    static func hasExpectedForm(_ bytes: [UInt8], _ algorithm: Algorithm) -> Bool {
        switch algorithm {
        case .rsa: bytes.count <= byteLimit && bytes.dropFirst(4).starts(with: rsaHeader)
        case .ecdsa: ecdsaForms.contains { bytes.count == $0.header.count + $0.byteCount && bytes.starts(with: $0.header) }
        }
    }

    private func key() throws(CryptoError) -> EVPKey {
        guard Self.hasExpectedForm(bytes, algorithm) else { throw .invalidKey }
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
            guard (2_048...8_192).contains(EVP_PKEY_get_bits(key.pointer)), Self.hasShortExponent(key) else { throw .invalidKey }
        }
        return key
    }

    /// The time of a verification grows with the exponent's length.
    private static func hasShortExponent(_ key: EVPKey) -> Bool {
        var exponent: OpaquePointer?
        defer { BN_free(exponent) }
        return EVP_PKEY_get_bn_param(key.pointer, "e", &exponent) == 1 && BN_num_bits(exponent) <= 32
    }
}
