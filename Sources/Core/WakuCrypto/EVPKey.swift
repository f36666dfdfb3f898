import COpenSSL

/// Owns a libcrypto key.
final class EVPKey {
    let pointer: OpaquePointer

    /// Takes ownership of a key; nil for a null pointer.
    init?(taking pointer: OpaquePointer?) {
        guard let pointer else { return nil }
        self.pointer = pointer
    }

    /// - Precondition: the length is that of the algorithm's keys.
    init(private secret: SecretBytes, algorithm: String) {
        let made = secret.withBytes { EVP_PKEY_new_raw_private_key_ex(nil, algorithm, nil, $0.baseAddress, $0.count) }
        guard let made else { preconditionFailure("libcrypto has no memory for a key") }
        pointer = made
    }

    /// nil unless the length is that of the algorithm's keys.
    init?(public bytes: [UInt8], algorithm: String) {
        guard let made = EVP_PKEY_new_raw_public_key_ex(nil, algorithm, nil, bytes, bytes.count) else { return nil }
        pointer = made
    }

    deinit {
        EVP_PKEY_free(pointer)
    }

    func rawPublicKey(byteCount: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, initialized in
            initialized = byteCount
            require(EVP_PKEY_get_raw_public_key(pointer, buffer.baseAddress, &initialized))
        }
    }

    /// - Parameters:
    ///   - digest: its name, or nil for an algorithm with a fixed digest.
    ///   - byteCount: the maximum length of the signature.
    func signature(of message: [UInt8], digest: String?, byteCount: Int) -> [UInt8] {
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        require(EVP_DigestSignInit_ex(context, nil, digest, nil, nil, pointer, nil))
        return [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, initialized in
            initialized = buffer.count
            require(EVP_DigestSign(context, buffer.baseAddress, &initialized, message, message.count))
        }
    }

    /// - Parameter digest: its name, or nil for an algorithm with a fixed digest.
    func isValid(_ signature: [UInt8], of message: [UInt8], digest: String?) -> Bool {
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        guard EVP_DigestVerifyInit_ex(context, nil, digest, nil, nil, pointer, nil) == 1 else { return false }
        return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
}
