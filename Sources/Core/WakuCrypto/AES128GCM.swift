import COpenSSL

/// AES-128-GCM with a nonce of 12 bytes: `ciphertext ‖ tag(16)`, as in encrypted content encoding (RFC 8188).
enum AES128GCM {
    static let keyByteCount = 16
    static let nonceByteCount = 12
    static let tagByteCount = 16

    private static let contexts = ThreadContexts.ciphers()

    static func seal(_ plain: [UInt8], key: SecretBytes, nonce: SecretBytes) -> [UInt8] {
        precondition(key.count == keyByteCount && nonce.count == nonceByteCount)
        return [UInt8](unsafeUninitializedCapacity: plain.count + tagByteCount) { buffer, initialized in
            guard let start = buffer.baseAddress else { return }
            contexts.withContext { context in
                var written: Int32 = 0
                key.withBytes { key in
                    nonce.withBytes { nonce in
                        require(EVP_EncryptInit_ex2(context, Algorithm.aes128GCM.pointer, key.baseAddress, nonce.baseAddress, nil))
                    }
                }
                if !plain.isEmpty { require(EVP_EncryptUpdate(context, start, &written, plain, Int32(plain.count))) }
                require(EVP_EncryptFinal_ex(context, start + plain.count, &written))
                require(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tagByteCount), start + plain.count))
            }
            initialized = plain.count + tagByteCount
        }
    }

    /// - Throws: ``CryptoError/truncated``, ``CryptoError/authenticationFailed``
    static func open(_ sealed: [UInt8], key: SecretBytes, nonce: SecretBytes) throws(CryptoError) -> [UInt8] {
        precondition(key.count == keyByteCount && nonce.count == nonceByteCount)
        let count = sealed.count - tagByteCount
        guard count >= 0 else { throw .truncated }
        var isAuthentic = false
        let plain = [UInt8](unsafeUninitializedCapacity: max(1, count)) { buffer, initialized in
            contexts.withContext { context in
                var written: Int32 = 0
                key.withBytes { key in
                    nonce.withBytes { nonce in
                        require(EVP_DecryptInit_ex2(context, Algorithm.aes128GCM.pointer, key.baseAddress, nonce.baseAddress, nil))
                    }
                }
                if count > 0 { require(EVP_DecryptUpdate(context, buffer.baseAddress, &written, sealed, Int32(count))) }
                var tag = Array(sealed[count...])
                require(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagByteCount), &tag))
                var nothing: UInt8 = 0
                isAuthentic = EVP_DecryptFinal_ex(context, &nothing, &written) == 1
            }
            initialized = isAuthentic ? count : 0
        }
        guard isAuthentic else { throw .authenticationFailed }
        return plain
    }
}
