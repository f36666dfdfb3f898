import COpenSSL

/// An algorithm of libcrypto, fetched once for the process. It is immutable from then on, so threads may share it.
struct Algorithm: Sendable {
    nonisolated(unsafe) let pointer: OpaquePointer?

    static let aes128CTR = Algorithm(pointer: EVP_CIPHER_fetch(nil, "AES-128-CTR", nil))
    static let aes128GCM = Algorithm(pointer: EVP_CIPHER_fetch(nil, "AES-128-GCM", nil))
    static let aes256ECB = Algorithm(pointer: EVP_CIPHER_fetch(nil, "AES-256-ECB", nil))
    static let aes256GCM = Algorithm(pointer: EVP_CIPHER_fetch(nil, "AES-256-GCM", nil))
    static let chaCha20Poly1305 = Algorithm(pointer: EVP_CIPHER_fetch(nil, "ChaCha20-Poly1305", nil))
    static let sha256 = Algorithm(pointer: EVP_MD_fetch(nil, "SHA256", nil))
    static let sha3256 = Algorithm(pointer: EVP_MD_fetch(nil, "SHA3-256", nil))
    static let shake256 = Algorithm(pointer: EVP_MD_fetch(nil, "SHAKE256", nil))
}
