import COpenSSL

/// A point of P-256 (secp256r1) in its uncompressed form, `04 ‖ x(32) ‖ y(32)`: the form of Web Push keys.
public struct P256PublicKey: Hashable, Sendable {
    /// Length of ``bytes``.
    public static let byteCount = 65
    /// 0x04 ‖ X ‖ Y.
    public let bytes: [UInt8]

    /// - Throws: ``CryptoError/invalidKey`` unless the bytes are an uncompressed point on the curve.
    public init(parsing bytes: some Collection<UInt8>) throws(CryptoError) {
        guard bytes.count == Self.byteCount, bytes.first == 4 else { throw .invalidKey }
        self.bytes = Array(bytes)
        guard let point = P256.point(self.bytes) else { throw .invalidKey }
        EC_POINT_free(point)
    }

    init(trusted bytes: [UInt8]) {
        self.bytes = bytes
    }

    func evpKey() -> EVPKey? {
        // The builder keeps pointers to its parts until it makes the parameters.
        bytes.withUnsafeBufferPointer { point in
            P256.makeKey(selection: waku_evp_public_key) { builder in
                OSSL_PARAM_BLD_push_octet_string(builder, ParameterName.publicKey, point.baseAddress, point.count) == 1
            }
        }
    }

    /// Verifies an ECDSA signature with SHA-256 in the form of JSON Web Signature ES256: `r(32) ‖ s(32)`.
    public func isValid(_ signature: [UInt8], of message: [UInt8]) -> Bool {
        guard signature.count == P256.signatureByteCount, let key = evpKey(), let der = P256.der(signature) else { return false }
        return key.isValid(der, of: message, digest: "SHA256")
    }
}

/// A private key of P-256. The scalar is wiped when freed, and never printed.
public struct P256PrivateKey: Sendable, Redacted {
    /// Length of a private key in bytes.
    public static let byteCount = 32
    /// The scalar, 32 bytes, big-endian.
    public let scalar: SecretBytes
    /// The public half of the key.
    public let publicKey: P256PublicKey

    /// A new key from the system's source of randomness.
    public static func generate() -> P256PrivateKey {
        // All but one of 2³² random numbers are scalars.
        while true {
            if let key = P256PrivateKey(SecretBytes.random(count: byteCount)) { return key }
        }
    }

    /// nil unless there are 32 bytes that are a scalar from 1 to the group's order less 1.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        self.init(SecretBytes(bytes))
    }

    /// nil unless the text is a PEM file with an unencrypted private key of P-256.
    public init?(pem: [UInt8]) {
        guard let input = BIO_new_mem_buf(pem, Int32(clamping: pem.count)) else { return nil }
        defer { BIO_free(input) }
        // Without this callback, OpenSSL would ask on the terminal for the passphrase of an encrypted key.
        let noPassphrase: @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 = { _, _, _, _ in
            -1
        }
        guard let key = EVPKey(taking: PEM_read_bio_PrivateKey(input, nil, noPassphrase, nil)), EVP_PKEY_is_a(key.pointer, "EC") == 1
        else {
            ERR_clear_error()
            return nil
        }
        var name = [CChar](repeating: 0, count: 32)
        var count = 0
        guard EVP_PKEY_get_group_name(key.pointer, &name, name.count, &count) == 1,
            String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self) == "prime256v1"
        else { return nil }
        self.init(key)
    }

    private init?(_ key: EVPKey) {
        var number: OpaquePointer?
        guard EVP_PKEY_get_bn_param(key.pointer, "priv", &number) == 1 else { return nil }
        defer { BN_clear_free(number) }
        self.init(
            SecretBytes(count: Self.byteCount) { output in
                require(
                    BN_bn2binpad(number, output.assumingMemoryBound(to: UInt8.self).baseAddress, Int32(Self.byteCount))
                        == Self.byteCount ? 1 : 0)
            })
    }

    private init?(_ scalar: SecretBytes) {
        guard let number = P256.number(scalar) else { return nil }
        defer { BN_clear_free(number) }
        guard BN_is_zero(number) == 0, BN_cmp(number, EC_GROUP_get0_order(P256.group)) < 0, let point = EC_POINT_new(P256.group) else {
            return nil
        }
        defer { EC_POINT_free(point) }
        require(EC_POINT_mul(P256.group, point, number, nil, nil, nil))
        let count = P256PublicKey.byteCount
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            initialized = EC_POINT_point2oct(P256.group, point, POINT_CONVERSION_UNCOMPRESSED, buffer.baseAddress, count, nil)
        }
        guard bytes.count == count else { return nil }
        self.scalar = scalar
        publicKey = P256PublicKey(trusted: bytes)
    }

    private func evpKey() -> EVPKey {
        // The builder keeps pointers to its parts until it makes the parameters.
        let made = publicKey.bytes.withUnsafeBufferPointer { point -> EVPKey? in
            guard let number = P256.number(scalar) else { return nil }
            defer { BN_clear_free(number) }
            return P256.makeKey(selection: waku_evp_key_pair) { builder in
                OSSL_PARAM_BLD_push_octet_string(builder, ParameterName.publicKey, point.baseAddress, point.count) == 1
                    && P256.pushPrivate(number, to: builder)
            }
        }
        guard let made else { preconditionFailure("libcrypto has no memory for a key") }
        return made
    }

    /// The x coordinate of ECDH, 32 bytes, without a key derivation.
    ///
    /// By libcrypto's arithmetic rather than its EVP interface, which copies both keys, and checks the other one by multiplying it by the group's
    /// order. On this curve every point has that order, since the cofactor is 1.
    public func sharedSecret(with other: P256PublicKey) throws(CryptoError) -> SecretBytes {
        guard let peer = P256.point(other.bytes) else { throw .invalidKey }
        defer { EC_POINT_free(peer) }
        let (number, shared, x) = (P256.number(scalar), EC_POINT_new(P256.group), BN_new())
        defer {
            BN_clear_free(number)
            EC_POINT_clear_free(shared)
            BN_clear_free(x)
        }
        guard EC_POINT_mul(P256.group, shared, nil, peer, number, nil) == 1,
            EC_POINT_get_affine_coordinates(P256.group, shared, x, nil, nil) == 1
        else { throw .invalidKey }
        return SecretBytes(count: Self.byteCount) { output in
            let written = BN_bn2binpad(x, output.assumingMemoryBound(to: UInt8.self).baseAddress, Int32(Self.byteCount))
            require(written == Self.byteCount ? 1 : 0)
        }
    }

    /// An ECDSA signature with SHA-256 in the form of JSON Web Signature ES256: `r(32) ‖ s(32)`.
    public func signature(of message: [UInt8]) -> [UInt8] {
        P256.raw(evpKey().signature(of: message, digest: "SHA256", byteCount: 80))
    }
}

/// Conversions between P-256 keys and signatures and libcrypto's types.
enum P256 {
    static let signatureByteCount = 64

    /// Immutable, so threads may share it.
    nonisolated(unsafe) static let group: OpaquePointer? = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1)

    /// nil unless the bytes are a point on the curve. The caller frees it.
    static func point(_ bytes: [UInt8]) -> OpaquePointer? {
        guard let point = EC_POINT_new(group) else { return nil }
        // Checks that it is on the curve.
        guard EC_POINT_oct2point(group, point, bytes, bytes.count, nil) == 1 else {
            ERR_clear_error()
            EC_POINT_free(point)
            return nil
        }
        return point
    }

    static func number(_ scalar: SecretBytes) -> OpaquePointer? {
        scalar.withBytes { BN_bin2bn($0.baseAddress, Int32($0.count), nil) }
    }

    static func pushPrivate(_ number: OpaquePointer, to builder: OpaquePointer) -> Bool {
        OSSL_PARAM_BLD_push_BN(builder, ParameterName.privateKey, number) == 1
    }

    /// nil when libcrypto refuses the parts.
    ///
    /// - Parameter add: adds the parts besides the group; they must stay valid until this function returns.
    static func makeKey(selection: Int32, _ add: (OpaquePointer) -> Bool) -> EVPKey? {
        guard let builder = OSSL_PARAM_BLD_new() else { return nil }
        defer { OSSL_PARAM_BLD_free(builder) }
        guard OSSL_PARAM_BLD_push_utf8_string(builder, ParameterName.group, ParameterName.p256, 0) == 1, add(builder),
            let parameters = OSSL_PARAM_BLD_to_param(builder)
        else { return nil }
        defer { OSSL_PARAM_free(parameters) }
        let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil)
        defer { EVP_PKEY_CTX_free(context) }
        var made: OpaquePointer?
        guard EVP_PKEY_fromdata_init(context) == 1, EVP_PKEY_fromdata(context, &made, selection, parameters) == 1 else {
            ERR_clear_error()
            return nil
        }
        return EVPKey(taking: made)
    }

    /// `r ‖ s` of a signature in DER that libcrypto made.
    static func raw(_ der: [UInt8]) -> [UInt8] {
        der.withUnsafeBufferPointer { der in
            var position = der.baseAddress
            let signature = d2i_ECDSA_SIG(nil, &position, der.count)
            defer { ECDSA_SIG_free(signature) }
            return [UInt8](unsafeUninitializedCapacity: signatureByteCount) { buffer, initialized in
                guard let start = buffer.baseAddress else { return }
                require(BN_bn2binpad(ECDSA_SIG_get0_r(signature), start, 32) == 32 ? 1 : 0)
                require(BN_bn2binpad(ECDSA_SIG_get0_s(signature), start + 32, 32) == 32 ? 1 : 0)
                initialized = signatureByteCount
            }
        }
    }

    /// nil when memory is short.
    static func der(_ raw: [UInt8]) -> [UInt8]? {
        guard let signature = ECDSA_SIG_new() else { return nil }
        defer { ECDSA_SIG_free(signature) }
        let (r, s) = raw.withUnsafeBufferPointer { raw in
            (BN_bin2bn(raw.baseAddress, 32, nil), BN_bin2bn(raw.baseAddress.map { $0 + 32 }, 32, nil))
        }
        guard ECDSA_SIG_set0(signature, r, s) == 1 else {
            BN_free(r)
            BN_free(s)
            return nil
        }
        let count = i2d_ECDSA_SIG(signature, nil)
        guard count > 0 else { return nil }
        return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, initialized in
            var position = buffer.baseAddress
            initialized = Int(max(0, i2d_ECDSA_SIG(signature, &position)))
        }
    }
}
