import COpenSSL

package enum HMACSHA256 {
    static let byteCount = 32

    static func tag(key: UnsafeBufferPointer<UInt8>, of message: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, initialized in
            tag(key: key, of: message, into: UnsafeMutableRawBufferPointer(buffer))
            initialized = byteCount
        }
    }

    /// - Parameter output: 32 bytes.
    static func tag(key: UnsafeBufferPointer<UInt8>, of message: UnsafeBufferPointer<UInt8>, into output: UnsafeMutableRawBufferPointer) {
        precondition(output.count >= byteCount)
        waku_hmac_sha256(
            key.baseAddress, key.count, message.baseAddress, message.count, output.assumingMemoryBound(to: UInt8.self).baseAddress)
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
