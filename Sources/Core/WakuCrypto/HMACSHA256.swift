import COpenSSL

package enum HMACSHA256 {
    static let byteCount = 32

    private static let contexts = ThreadContexts(
        make, wipe: { require(EVP_MAC_init($0, zeros, zeros.count, nil)) }, free: { EVP_MAC_CTX_free(OpaquePointer($0)) })
    private static let zeros = [UInt8](repeating: 0, count: byteCount)

    @Sendable private static func make() -> OpaquePointer? {
        // The context keeps the algorithm alive.
        let algorithm = EVP_MAC_fetch(nil, "HMAC", nil)
        defer { EVP_MAC_free(algorithm) }
        guard let context = EVP_MAC_CTX_new(algorithm) else { return nil }
        var name = Array("SHA256".utf8CString)
        name.withUnsafeMutableBufferPointer { name in
            var parameters = [
                OSSL_PARAM_construct_utf8_string(ParameterName.digest, name.baseAddress, 0), OSSL_PARAM_construct_end(),
            ]
            require(EVP_MAC_CTX_set_params(context, &parameters))
        }
        return context
    }

    static func tag(key: UnsafeBufferPointer<UInt8>, of message: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, initialized in
            tag(key: key, of: message, into: UnsafeMutableRawBufferPointer(buffer))
            initialized = byteCount
        }
    }

    /// - Parameter output: 32 bytes.
    static func tag(key: UnsafeBufferPointer<UInt8>, of message: UnsafeBufferPointer<UInt8>, into output: UnsafeMutableRawBufferPointer) {
        contexts.withContext { context in
            var written = 0
            require(EVP_MAC_init(context, key.baseAddress, key.count, nil))
            require(EVP_MAC_update(context, message.baseAddress, message.count))
            require(EVP_MAC_final(context, output.assumingMemoryBound(to: UInt8.self).baseAddress, &written, byteCount))
        }
    }

    /// A key of 32 bytes that is derived from a secret.
    ///
    /// - Parameters:
    ///   - label: The key of the HMAC, not secret.
    ///   - secret: The input of the HMAC.
    package static func derivedKey(label: [UInt8], of secret: SecretBytes) -> SymmetricKey {
        SymmetricKey(
            SecretBytes(count: byteCount) { output in
                label.withUnsafeBufferPointer { label in
                    secret.withBytes { tag(key: label, of: $0, into: output) }
                }
            })
    }
}

extension SymmetricKey {
    /// HMAC-SHA256 under this key, 32 bytes.
    public func authenticationCode(of message: [UInt8]) -> [UInt8] {
        secret.withBytes { key in message.withUnsafeBufferPointer { HMACSHA256.tag(key: key, of: $0) } }
    }
}
