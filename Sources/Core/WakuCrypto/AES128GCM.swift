/// AES-128-GCM with a nonce of 12 bytes: `ciphertext ‖ tag(16)`, as in encrypted content encoding (RFC 8188).
enum AES128GCM {
    static let keyByteCount = 16
    static let nonceByteCount = 12
    static let tagByteCount = GCM.tagByteCount

    private static let cipher = GCM(.aes128GCM)

    static func seal(_ plain: [UInt8], key: SecretBytes, nonce: SecretBytes) -> [UInt8] {
        precondition(key.count == keyByteCount && nonce.count == nonceByteCount)
        return [UInt8](unsafeUninitializedCapacity: plain.count + tagByteCount) { buffer, initialized in
            initialized = buffer.count
            guard let start = buffer.baseAddress else { return }
            nonce.withBytes { nonce in
                plain.withUnsafeBufferPointer { cipher.seal($0, into: start, key: key, nonce: nonce.baseAddress) }
            }
        }
    }

    /// - Throws: ``CryptoError/truncated``, ``CryptoError/authenticationFailed``
    static func open(_ sealed: [UInt8], key: SecretBytes, nonce: SecretBytes) throws(CryptoError) -> [UInt8] {
        precondition(key.count == keyByteCount && nonce.count == nonceByteCount)
        let count = sealed.count - tagByteCount
        guard count >= 0 else { throw .truncated }
        var isAuthentic = false
        let plain = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            nonce.withBytes { nonce in
                sealed.withUnsafeBufferPointer { sealed in
                    guard let body = sealed.baseAddress else { return }
                    isAuthentic = cipher.open(body, count, into: buffer.baseAddress, key: key, nonce: nonce.baseAddress)
                }
            }
            initialized = isAuthentic ? count : 0
        }
        guard isAuthentic else { throw .authenticationFailed }
        return plain
    }
}
