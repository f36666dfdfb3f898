import COpenSSL

/// Encryption to a public key, compatible with go-ethereum.
///
///     ephemeral key(65) ‖ IV(16) ‖ AES-128-CTR ‖ HMAC-SHA256(32)
///
/// z is the X coordinate of ECDH. K = SHA-256(00 00 00 01 ‖ z). AES key: K[0..<16]. HMAC key: SHA-256(K[16..<32]). The tag covers IV and
/// ciphertext.
public enum ECIES {
    /// The overhead of encryption in bytes.
    public static let overhead = 65 + ivByteCount + HMACSHA256.byteCount
    static let ivByteCount = 16
    private static let ivStart = 65
    private static let bodyStart = ivStart + ivByteCount

    private static let contexts = ThreadContexts.ciphers()

    /// Encrypts with a new ephemeral key.
    public static func seal(_ plain: [UInt8], to recipient: PublicKey) -> [UInt8] {
        seal(plain, to: recipient, ephemeral: .generate(), iv: randomBytes(ivByteCount))
    }

    static func seal(_ plain: [UInt8], to recipient: PublicKey, ephemeral: PrivateKey, iv: [UInt8]) -> [UInt8] {
        precondition(iv.count == ivByteCount)
        let keys = Keys(ephemeral.sharedSecret(with: recipient))
        let tagStart = bodyStart + plain.count
        return [UInt8](unsafeUninitializedCapacity: plain.count + overhead) { sealed, count in
            count = sealed.count
            let output = UnsafeMutableRawBufferPointer(sealed)
            output.copyBytes(from: ephemeral.publicKey.uncompressed)
            UnsafeMutableRawBufferPointer(rebasing: output[ivStart...]).copyBytes(from: iv)
            plain.withUnsafeBufferPointer { plain in
                keys.crypt(
                    plain, iv: UnsafeBufferPointer(UnsafeMutableBufferPointer(rebasing: sealed[ivStart..<bodyStart])),
                    into: UnsafeMutableBufferPointer(rebasing: sealed[bodyStart..<tagStart]))
            }
            keys.tag(
                UnsafeBufferPointer(UnsafeMutableBufferPointer(rebasing: sealed[ivStart..<tagStart])),
                into: UnsafeMutableRawBufferPointer(rebasing: output[tagStart...]))
        }
    }

    /// - Throws: ``CryptoError/truncated``, ``CryptoError/invalidKey``, ``CryptoError/authenticationFailed``
    public static func open(_ sealed: [UInt8], with key: PrivateKey) throws(CryptoError) -> [UInt8] {
        guard sealed.count >= overhead else { throw .truncated }
        let ephemeral = try PublicKey(parsing: sealed[..<ivStart])
        let keys = Keys(key.sharedSecret(with: ephemeral))
        let tagStart = sealed.count - HMACSHA256.byteCount
        return try sealed.withUnsafeBufferPointer { sealed throws(CryptoError) in
            let isAuthentic = withUnsafeTemporaryAllocation(byteCount: HMACSHA256.byteCount, alignment: 8) { tag in
                keys.tag(UnsafeBufferPointer(rebasing: sealed[ivStart..<tagStart]), into: tag)
                return constantTimeEqual(
                    UnsafeRawBufferPointer(tag), UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: sealed[tagStart...])))
            }
            guard isAuthentic else { throw .authenticationFailed }
            return [UInt8](unsafeUninitializedCapacity: tagStart - bodyStart) { plain, count in
                count = plain.count
                keys.crypt(
                    UnsafeBufferPointer(rebasing: sealed[bodyStart..<tagStart]),
                    iv: UnsafeBufferPointer(rebasing: sealed[ivStart..<bodyStart]),
                    into: plain)
            }
        }
    }

    /// K in the first 32 bytes, followed by the HMAC key.
    private struct Keys {
        let secret: SecretBytes

        init(_ z: SecretBytes) {
            secret = SecretBytes(count: 64) { output in
                withUnsafeTemporaryAllocation(byteCount: 36, alignment: 8) { counted in
                    counted.storeBytes(of: UInt32(1).bigEndian, as: UInt32.self)
                    z.withBytes { UnsafeMutableRawBufferPointer(rebasing: counted[4...]).copyBytes(from: $0) }
                    guard let start = output.baseAddress else { return }
                    SHA256.hash(UnsafeBufferPointer(counted.assumingMemoryBound(to: UInt8.self)), into: start)
                    OPENSSL_cleanse(counted.baseAddress, counted.count)
                    let second = UnsafeBufferPointer(start: (start + 16).assumingMemoryBound(to: UInt8.self), count: 16)
                    SHA256.hash(second, into: start + 32)
                }
            }
        }

        /// - Parameter output: 32 bytes.
        func tag(_ message: UnsafeBufferPointer<UInt8>, into output: UnsafeMutableRawBufferPointer) {
            secret.withBytes { HMACSHA256.tag(key: UnsafeBufferPointer(rebasing: $0[32...]), of: message, into: output) }
        }

        /// Both directions are the same in counter mode.
        ///
        /// - Parameter output: as long as the input.
        func crypt(_ input: UnsafeBufferPointer<UInt8>, iv: UnsafeBufferPointer<UInt8>, into output: UnsafeMutableBufferPointer<UInt8>) {
            guard !input.isEmpty else { return }
            contexts.withContext { context in
                var written: Int32 = 0
                secret.withBytes { require(EVP_EncryptInit_ex2(context, Algorithm.aes128CTR.pointer, $0.baseAddress, iv.baseAddress, nil)) }
                require(EVP_EncryptUpdate(context, output.baseAddress, &written, input.baseAddress, Int32(input.count)))
            }
        }
    }
}
