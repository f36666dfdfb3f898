import COpenSSL

/// libcrypto's calls for Web Push on preallocated memory, with contexts that are used again. For one thread.
final class BareP256 {
    private static let messageByteCount = 1025

    private let group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1)
    private let peer: OpaquePointer?
    private let result: OpaquePointer?
    private let scalar = BN_new()
    private let coordinate = BN_new()
    private let temporary = BN_CTX_new()
    private let derivation: OpaquePointer?
    private let cipher = EVP_CIPHER_CTX_new()
    private let algorithm = EVP_CIPHER_fetch(nil, "AES-128-GCM", nil)
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
    private let bytes: UnsafeMutablePointer<UInt8>
    private var parameters: [OSSL_PARAM] = []
    private var written: Int32 = 0

    init() {
        guard let start = memory.baseAddress else { preconditionFailure("no memory") }
        bytes = start.initializeMemory(as: UInt8.self, repeating: 7, count: memory.count)
        (peer, result) = (EC_POINT_new(group), EC_POINT_new(group))
        let kind = EVP_KDF_fetch(nil, "HKDF", nil)
        derivation = EVP_KDF_CTX_new(kind)
        EVP_KDF_free(kind)
        generate()
        check(EC_POINT_copy(peer, result))
        // An OSSL_PARAM keeps pointers to its name and value; those of literals stay valid.
        func name(_ text: StaticString) -> UnsafePointer<CChar> { UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self) }
        let digest: StaticString = "SHA256"
        parameters = [
            OSSL_PARAM_construct_utf8_string(name("digest"), UnsafeMutablePointer(mutating: name(digest)), 0),
            OSSL_PARAM_construct_octet_string(name("key"), bytes + 2048, 32),
            OSSL_PARAM_construct_octet_string(name("salt"), bytes + 2080, 16),
            OSSL_PARAM_construct_octet_string(name("info"), bytes + 2096, 144), OSSL_PARAM_construct_end(),
        ]
    }

    deinit {
        EC_POINT_free(peer)
        EC_POINT_free(result)
        BN_free(scalar)
        BN_free(coordinate)
        BN_CTX_free(temporary)
        EVP_KDF_CTX_free(derivation)
        EVP_CIPHER_CTX_free(cipher)
        EVP_CIPHER_free(algorithm)
        EC_GROUP_free(group)
        memory.deallocate()
    }

    func generate() {
        check(RAND_priv_bytes(bytes, 32))
        // Below the order.
        bytes[0] &= 0x7F
        BN_bin2bn(bytes, 32, scalar)
        check(EC_POINT_mul(group, result, scalar, nil, nil, temporary))
        precondition(EC_POINT_point2oct(group, result, POINT_CONVERSION_UNCOMPRESSED, bytes + 64, 65, temporary) == 65)
    }

    func ecdh() {
        check(EC_POINT_mul(group, result, nil, peer, scalar, temporary))
        check(EC_POINT_get_affine_coordinates(group, result, coordinate, nil, temporary))
        precondition(BN_bn2binpad(coordinate, bytes + 32, 32) == 32)
    }

    func hkdf() {
        check(EVP_KDF_derive(derivation, bytes + 192, 32, &parameters))
    }

    func seal() {
        let (plain, sealed) = (bytes + 256, bytes + 2560)
        check(EVP_EncryptInit_ex2(cipher, algorithm, bytes, bytes + 16, nil))
        check(EVP_EncryptUpdate(cipher, sealed, &written, plain, Int32(Self.messageByteCount)))
        check(EVP_EncryptFinal_ex(cipher, sealed + Self.messageByteCount, &written))
        check(EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, 16, sealed + 2 * 512 + 1))
    }
}
