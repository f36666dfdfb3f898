import COpenSSL

/// libcrypto's calls with reused contexts that get a new key each time. For one thread.
final class BareCiphers {
    static let byteCount = 600

    private let gcmAlgorithm = EVP_CIPHER_fetch(nil, "AES-256-GCM", nil)
    private let ctrAlgorithm = EVP_CIPHER_fetch(nil, "AES-128-CTR", nil)
    private let sha256Algorithm = EVP_MD_fetch(nil, "SHA256", nil)
    private let shakeAlgorithm = EVP_MD_fetch(nil, "SHAKE256", nil)
    private let cipher = EVP_CIPHER_CTX_new()
    private let digest = EVP_MD_CTX_new()
    private let mac: OpaquePointer?
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
    private let key: UnsafeMutablePointer<UInt8>
    private let nonce: UnsafeMutablePointer<UInt8>
    private let tag: UnsafeMutablePointer<UInt8>
    private let plain: UnsafeMutablePointer<UInt8>
    private let sealed: UnsafeMutablePointer<UInt8>
    private let output: UnsafeMutablePointer<UInt8>
    private var written: Int32 = 0

    init() {
        guard let start = memory.baseAddress else { preconditionFailure("no memory") }
        let bytes = start.initializeMemory(as: UInt8.self, repeating: 7, count: memory.count)
        (key, nonce, tag, plain, sealed, output) = (bytes, bytes + 64, bytes + 128, bytes + 256, bytes + 1024, bytes + 2048)
        let algorithm = EVP_MAC_fetch(nil, "HMAC", nil)
        mac = EVP_MAC_CTX_new(algorithm)
        EVP_MAC_free(algorithm)
        // An OSSL_PARAM keeps pointers to its name and value.
        "digest".withCString { name in
            "SHA256".withCString { value in
                var parameters = [
                    OSSL_PARAM_construct_utf8_string(name, UnsafeMutablePointer(mutating: value), 0), OSSL_PARAM_construct_end(),
                ]
                check(EVP_MAC_CTX_set_params(mac, &parameters))
            }
        }
        sealGCM()
    }

    deinit {
        EVP_CIPHER_CTX_free(cipher)
        EVP_MD_CTX_free(digest)
        EVP_MAC_CTX_free(mac)
        EVP_CIPHER_free(gcmAlgorithm)
        EVP_CIPHER_free(ctrAlgorithm)
        EVP_MD_free(sha256Algorithm)
        EVP_MD_free(shakeAlgorithm)
        memory.deallocate()
    }

    static func random(_ output: UnsafeMutablePointer<UInt8>, _ count: Int32) {
        check(RAND_priv_bytes(output, count))
    }

    func sealGCM() {
        check(EVP_EncryptInit_ex2(cipher, gcmAlgorithm, key, nonce, nil))
        check(EVP_EncryptUpdate(cipher, sealed, &written, plain, Int32(Self.byteCount)))
        check(EVP_EncryptFinal_ex(cipher, sealed + Self.byteCount, &written))
        check(EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, 16, tag))
    }

    /// Decrypts the output of ``sealGCM()``.
    func openGCM() {
        check(EVP_DecryptInit_ex2(cipher, gcmAlgorithm, key, nonce, nil))
        check(EVP_DecryptUpdate(cipher, output, &written, sealed, Int32(Self.byteCount)))
        check(EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, 16, tag))
        check(EVP_DecryptFinal_ex(cipher, output + Self.byteCount, &written))
    }

    func cryptCTR(key: UnsafePointer<UInt8>) {
        check(EVP_EncryptInit_ex2(cipher, ctrAlgorithm, key, nonce, nil))
        check(EVP_EncryptUpdate(cipher, output, &written, plain, Int32(Self.byteCount)))
    }

    func sha256(_ input: UnsafePointer<UInt8>, _ count: Int, into result: UnsafeMutablePointer<UInt8>) {
        check(EVP_DigestInit_ex2(digest, sha256Algorithm, nil))
        check(EVP_DigestUpdate(digest, input, count))
        check(EVP_DigestFinal_ex(digest, result, nil))
    }

    func sha256() {
        sha256(plain, Self.byteCount, into: output)
    }

    func shake256() {
        check(EVP_DigestInit_ex2(digest, shakeAlgorithm, nil))
        check(EVP_DigestUpdate(digest, plain, 65))
        check(EVP_DigestFinalXOF(digest, output, 64))
    }

    func hmac(key: UnsafePointer<UInt8>) {
        var count = 0
        check(EVP_MAC_init(mac, key, 32, nil))
        check(EVP_MAC_update(mac, plain, Self.byteCount))
        check(EVP_MAC_final(mac, output, &count, 32))
    }

    func hmac() {
        hmac(key: key)
    }

    /// The cost of ``KeyDerivation/topicKey(_:)`` is this call.
    func topicKey() {
        waku_pbkdf2_sha256(plain, 65_356, output)
    }

    /// ECIES after its ECDH: two hashes for the keys, the tag, the cipher.
    func finishECIES(shared: UnsafePointer<UInt8>) {
        let keys = output + 1024
        (keys + 128).update(from: shared, count: 32)
        sha256(keys + 124, 36, into: keys)
        sha256(keys + 16, 16, into: keys + 32)
        hmac(key: keys + 32)
        cryptCTR(key: keys)
    }
}
