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

    private static let contexts = ThreadContexts.ciphers()

    /// Encrypts with a new ephemeral key.
    public static func seal(_ plain: [UInt8], to recipient: PublicKey) -> [UInt8] {
        seal(plain, to: recipient, ephemeral: .generate(), iv: randomBytes(ivByteCount))
    }

    static func seal(_ plain: [UInt8], to recipient: PublicKey, ephemeral: PrivateKey, iv: [UInt8]) -> [UInt8] {
        let keys = Keys(ephemeral.sharedSecret(with: recipient))
        var sealed: [UInt8] = []
        sealed.reserveCapacity(plain.count + overhead)
        sealed += ephemeral.publicKey.uncompressed
        sealed += iv
        plain.withUnsafeBufferPointer { sealed += keys.crypt($0, iv: iv) }
        sealed += sealed[65...].withUnsafeBufferPointer { keys.tag($0) }
        return sealed
    }

    /// - Throws: ``CryptoError/truncated``, ``CryptoError/invalidKey``, ``CryptoError/authenticationFailed``
    public static func open(_ sealed: [UInt8], with key: PrivateKey) throws(CryptoError) -> [UInt8] {
        guard sealed.count >= overhead else { throw .truncated }
        let ephemeral = try PublicKey(parsing: sealed[..<65])
        let keys = Keys(key.sharedSecret(with: ephemeral))
        let tagStart = sealed.count - HMACSHA256.byteCount
        let tag = sealed[65..<tagStart].withUnsafeBufferPointer { keys.tag($0) }
        guard constantTimeEqual(tag, Array(sealed[tagStart...])) else { throw .authenticationFailed }
        return sealed[(65 + ivByteCount)..<tagStart].withUnsafeBufferPointer { keys.crypt($0, iv: Array(sealed[65..<65 + ivByteCount])) }
    }

    /// K in the first 32 bytes, followed by the HMAC key.
    private struct Keys {
        let secret: SecretBytes

        init(_ z: SecretBytes) {
            let counted = SecretBytes(count: 36) { counted in
                counted[3] = 1
                z.withBytes { UnsafeMutableRawBufferPointer(rebasing: counted[4...]).copyBytes(from: $0) }
            }
            secret = SecretBytes(count: 64) { output in
                guard let start = output.baseAddress else { return }
                counted.withBytes { SHA256.hash($0, into: start) }
                let second = UnsafeBufferPointer(start: (start + 16).assumingMemoryBound(to: UInt8.self), count: 16)
                SHA256.hash(second, into: start + 32)
            }
        }

        func tag(_ message: UnsafeBufferPointer<UInt8>) -> [UInt8] {
            secret.withBytes { HMACSHA256.tag(key: UnsafeBufferPointer(rebasing: $0[32...]), of: message) }
        }

        /// Both directions are the same in counter mode.
        func crypt(_ input: UnsafeBufferPointer<UInt8>, iv: [UInt8]) -> [UInt8] {
            [UInt8](unsafeUninitializedCapacity: input.count) { output, initialized in
                initialized = input.count
                guard !input.isEmpty else { return }
                contexts.withContext { context in
                    var written: Int32 = 0
                    secret.withBytes { require(EVP_EncryptInit_ex2(context, Algorithm.aes128CTR.pointer, $0.baseAddress, iv, nil)) }
                    require(EVP_EncryptUpdate(context, output.baseAddress, &written, input.baseAddress, Int32(input.count)))
                }
            }
        }
    }
}
