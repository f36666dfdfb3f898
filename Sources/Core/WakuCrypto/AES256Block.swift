import COpenSSL

/// AES-256 on single blocks: a permutation of all values of 16 bytes that cannot be told from a random one without the key.
///
/// Not for messages: equal blocks have equal results.
public enum AES256Block {
    /// Length of a block in bytes.
    public static let byteCount = 16

    private static let contexts = ThreadContexts.ciphers()

    /// - Precondition: 16 bytes.
    public static func encrypt(_ block: [UInt8], key: SymmetricKey) -> [UInt8] { apply(to: block, key: key, isEncrypting: true) }

    /// The inverse of ``encrypt(_:key:)``.
    ///
    /// - Precondition: 16 bytes.
    public static func decrypt(_ block: [UInt8], key: SymmetricKey) -> [UInt8] { apply(to: block, key: key, isEncrypting: false) }

    private static func apply(to block: [UInt8], key: SymmetricKey, isEncrypting: Bool) -> [UInt8] {
        precondition(block.count == byteCount)
        return [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, initialized in
            contexts.withContext { context in
                var written: Int32 = 0
                key.secret.withBytes { key in
                    require(EVP_CipherInit_ex2(context, Algorithm.aes256ECB.pointer, key.baseAddress, nil, isEncrypting ? 1 : 0, nil))
                }
                require(EVP_CIPHER_CTX_set_padding(context, 0))
                require(EVP_CipherUpdate(context, buffer.baseAddress, &written, block, Int32(byteCount)))
                precondition(written == Int32(byteCount))
            }
            initialized = byteCount
        }
    }
}
