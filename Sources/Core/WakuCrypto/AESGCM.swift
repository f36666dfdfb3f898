import COpenSSL

/// 32 bytes for AES-256-GCM.
public struct SymmetricKey: Sendable {
    /// Length of a key in bytes.
    public static let byteCount = 32
    package let secret: SecretBytes

    /// - Precondition: 32 bytes.
    package init(_ secret: SecretBytes) {
        precondition(secret.count == Self.byteCount)
        self.secret = secret
    }

    /// nil unless there are 32 bytes.
    public init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        secret = SecretBytes(bytes)
    }

    /// A key of libcrypto's generator for private values.
    public static func random() -> SymmetricKey {
        SymmetricKey(SecretBytes.random(count: byteCount))
    }
}

/// AES-256-GCM with a nonce of 12 bytes and a tag of 16.
public enum AESGCM {
    /// Length of a nonce in bytes.
    public static let nonceByteCount = 12
    /// Length of a tag in bytes.
    public static let tagByteCount = 16

    private static let cipher = GCM(.aes256GCM)

    /// The position of the nonce: the two layouts of the protocol.
    public enum Layout: Sendable {
        /// `nonce(12) ‖ ciphertext ‖ tag(16)`: registrations, allowed_key_list, and rows of the database.
        case nonceFirst
        /// `ciphertext ‖ tag(16) ‖ nonce(12)`: Waku payloads under a topic's key.
        case nonceLast
    }

    /// Encrypts with a random nonce.
    public static func seal(_ plain: [UInt8], key: SymmetricKey, layout: Layout, associatedData: [UInt8] = []) -> [UInt8] {
        seal(plain, key: key, nonce: randomBytes(nonceByteCount), layout: layout, associatedData: associatedData)
    }

    /// Encrypts a key with a random nonce.
    public static func seal(_ plain: SymmetricKey, key: SymmetricKey, layout: Layout, associatedData: [UInt8] = []) -> [UInt8] {
        plain.secret.withBytes { plain in
            seal(plain, key: key, nonce: randomBytes(nonceByteCount), layout: layout, associatedData: associatedData)
        }
    }

    static func seal(_ plain: [UInt8], key: SymmetricKey, nonce: [UInt8], layout: Layout, associatedData: [UInt8] = []) -> [UInt8] {
        plain.withUnsafeBufferPointer { seal($0, key: key, nonce: nonce, layout: layout, associatedData: associatedData) }
    }

    private static func seal(
        _ plain: UnsafeBufferPointer<UInt8>, key: SymmetricKey, nonce: [UInt8], layout: Layout, associatedData: [UInt8]
    ) -> [UInt8] {
        precondition(nonce.count == nonceByteCount)
        return [UInt8](unsafeUninitializedCapacity: plain.count + nonceByteCount + tagByteCount) { buffer, initialized in
            initialized = buffer.count
            guard let start = buffer.baseAddress else { return }
            let body = layout == .nonceFirst ? start + nonceByteCount : start
            let nonceStart = layout == .nonceFirst ? start : start + plain.count + tagByteCount
            nonceStart.initialize(from: nonce, count: nonceByteCount)
            cipher.seal(plain, into: body, key: key.secret, nonce: nonceStart, associatedData: associatedData)
        }
    }

    /// - Throws: ``CryptoError/truncated``, ``CryptoError/authenticationFailed``
    public static func open(
        _ sealed: [UInt8], key: SymmetricKey, layout: Layout, associatedData: [UInt8] = []
    ) throws(CryptoError) -> [UInt8] {
        let plainCount = sealed.count - nonceByteCount - tagByteCount
        guard plainCount >= 0 else { throw .truncated }
        var isAuthentic = false
        let plain = [UInt8](unsafeUninitializedCapacity: plainCount) { buffer, initialized in
            isAuthentic = open(sealed, into: buffer.baseAddress, plainCount, key: key, layout: layout, associatedData: associatedData)
            initialized = isAuthentic ? plainCount : 0
        }
        guard isAuthentic else { throw .authenticationFailed }
        return plain
    }

    /// Decrypts a key.
    ///
    /// - Throws: ``CryptoError/truncated``, ``CryptoError/invalidKey``, ``CryptoError/authenticationFailed``
    public static func openKey(
        _ sealed: [UInt8], key: SymmetricKey, layout: Layout, associatedData: [UInt8] = []
    ) throws(CryptoError) -> SymmetricKey {
        let plainCount = sealed.count - nonceByteCount - tagByteCount
        guard plainCount >= 0 else { throw .truncated }
        guard plainCount == SymmetricKey.byteCount else { throw .invalidKey }
        var isAuthentic = false
        let secret = SecretBytes(count: plainCount) { buffer in
            let start = buffer.assumingMemoryBound(to: UInt8.self).baseAddress
            isAuthentic = open(sealed, into: start, plainCount, key: key, layout: layout, associatedData: associatedData)
        }
        guard isAuthentic else { throw .authenticationFailed }
        return SymmetricKey(secret)
    }

    /// Decrypts into memory of the caller. The output is valid only if it returns true.
    ///
    /// - Parameter plainCount: the length of `sealed` without nonce and tag. If it is 0, `output` may be nil.
    private static func open(
        _ sealed: [UInt8], into output: UnsafeMutablePointer<UInt8>?, _ plainCount: Int, key: SymmetricKey, layout: Layout,
        associatedData: [UInt8]
    ) -> Bool {
        sealed.withUnsafeBufferPointer { sealed in
            // Not nil: the count was checked before.
            guard let start = sealed.baseAddress else { return false }
            let body = layout == .nonceFirst ? start + nonceByteCount : start
            let nonce = layout == .nonceFirst ? start : start + plainCount + tagByteCount
            return cipher.open(body, plainCount, into: output, key: key.secret, nonce: nonce, associatedData: associatedData)
        }
    }
}

/// AES in Galois/Counter mode, with the tag behind the ciphertext. A context that changes its algorithm is slower, so each has its own.
struct GCM: Sendable {
    static let tagByteCount = AESGCM.tagByteCount

    private let contexts = ThreadContexts.ciphers()
    private let algorithm: Algorithm

    init(_ algorithm: Algorithm) { self.algorithm = algorithm }

    /// - Precondition: the output has room for the ciphertext and the tag, and the nonce has 12 bytes.
    func seal(
        _ plain: UnsafeBufferPointer<UInt8>, into output: UnsafeMutablePointer<UInt8>, key: SecretBytes, nonce: UnsafePointer<UInt8>?,
        associatedData: [UInt8] = []
    ) {
        contexts.withContext { context in
            var written: Int32 = 0
            key.withBytes { require(EVP_EncryptInit_ex2(context, algorithm.pointer, $0.baseAddress, nonce, nil)) }
            if !associatedData.isEmpty {
                require(EVP_EncryptUpdate(context, nil, &written, associatedData, Int32(associatedData.count)))
            }
            if !plain.isEmpty { require(EVP_EncryptUpdate(context, output, &written, plain.baseAddress, Int32(plain.count))) }
            require(EVP_EncryptFinal_ex(context, output + plain.count, &written))
            require(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagByteCount), output + plain.count))
        }
    }

    /// Decrypts into memory of the caller. The output is valid only if it returns true.
    ///
    /// - Parameters:
    ///   - body: the ciphertext and the tag.
    ///   - count: the length without the tag. If it is 0, `output` may be nil.
    func open(
        _ body: UnsafePointer<UInt8>, _ count: Int, into output: UnsafeMutablePointer<UInt8>?, key: SecretBytes,
        nonce: UnsafePointer<UInt8>?, associatedData: [UInt8] = []
    ) -> Bool {
        contexts.withContext { context in
            var written: Int32 = 0
            key.withBytes { require(EVP_DecryptInit_ex2(context, algorithm.pointer, $0.baseAddress, nonce, nil)) }
            if !associatedData.isEmpty {
                require(EVP_DecryptUpdate(context, nil, &written, associatedData, Int32(associatedData.count)))
            }
            if count > 0 { require(EVP_DecryptUpdate(context, output, &written, body, Int32(count))) }
            let tag = UnsafeMutableRawPointer(mutating: body + count)
            require(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagByteCount), tag))
            var nothing: UInt8 = 0
            return EVP_DecryptFinal_ex(context, &nothing, &written) == 1
        }
    }
}
