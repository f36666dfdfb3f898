import COpenSSL

/// ChaCha20-Poly1305 (RFC 8439) with one key in one direction, with the nonces of Noise. The context is created once and holds the key.
///
/// A message is processed in pieces: ``start(_:)``, then any ``authenticate(_:)``, then any ``update(_:into:)``, then one of
/// the finishing calls. Not thread-safe.
public final class ChaCha20Poly1305 {
    /// Length of a key in bytes.
    public static let keyByteCount = 32
    /// Length of a tag in bytes.
    public static let tagByteCount = 16

    /// The direction in which a context processes messages, fixed when it is created.
    public enum Direction: Sendable {
        /// Encrypts: ends with ``ChaCha20Poly1305/finishSealing(tag:)``.
        case seal
        /// Decrypts: ends with ``ChaCha20Poly1305/finishOpening(tag:)``.
        case open
    }

    private let context: OpaquePointer
    private let direction: Direction

    /// - Precondition: a key of 32 bytes.
    public init(key: SecretBytes, direction: Direction) {
        precondition(key.count == Self.keyByteCount)
        guard let context = EVP_CIPHER_CTX_new() else { preconditionFailure("libcrypto has no memory for a context") }
        self.context = context
        self.direction = direction
        let cipher = Algorithm.chaCha20Poly1305.pointer
        key.withBytes { require(EVP_CipherInit_ex2(context, cipher, $0.baseAddress, nil, direction == .seal ? 1 : 0, nil)) }
    }

    deinit {
        // Wipes the key.
        EVP_CIPHER_CTX_free(context)
    }

    /// Begins a message.
    ///
    /// - Parameter counter: 64 bits of the nonce, little-endian, after 32 of zeros. Never twice for one key when sealing.
    public func start(_ counter: UInt64) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 12) { nonce in
            nonce.initialize(repeating: 0)
            for index in 0..<8 { nonce[4 + index] = UInt8(truncatingIfNeeded: counter >> (8 * UInt64(index))) }
            require(EVP_CipherInit_ex2(context, nil, nil, nonce.baseAddress, -1, nil))
        }
    }

    /// Adds associated data, which is authenticated and not encrypted.
    public func authenticate(_ data: UnsafeRawBufferPointer) {
        guard !data.isEmpty else { return }
        var written: Int32 = 0
        require(EVP_CipherUpdate(context, nil, &written, data.assumingMemoryBound(to: UInt8.self).baseAddress, Int32(data.count)))
    }

    /// Processes the next piece. Input and output have the same length and may be the same memory.
    public func update(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer) {
        guard !input.isEmpty else { return }
        var written: Int32 = 0
        require(
            EVP_CipherUpdate(
                context, output.assumingMemoryBound(to: UInt8.self), &written, input.assumingMemoryBound(to: UInt8.self).baseAddress,
                Int32(input.count)))
    }

    /// Writes the 16 bytes of the tag.
    public func finishSealing(tag: UnsafeMutableRawPointer) {
        precondition(direction == .seal)
        var written: Int32 = 0
        var nothing: UInt8 = 0
        require(EVP_CipherFinal_ex(context, &nothing, &written))
        require(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagByteCount), tag))
    }

    /// Verifies the tag of 16 bytes. The output is valid only if it returns true.
    public func finishOpening(tag: UnsafeRawPointer) -> Bool {
        precondition(direction == .open)
        require(
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagByteCount), UnsafeMutableRawPointer(mutating: tag)))
        var written: Int32 = 0
        var nothing: UInt8 = 0
        return EVP_CipherFinal_ex(context, &nothing, &written) == 1
    }
}

extension ChaCha20Poly1305 {
    /// `ciphertext ‖ tag(16)` of a whole message. Only for encryption.
    public func seal(_ plain: [UInt8], counter: UInt64, associatedData: [UInt8]) -> [UInt8] {
        start(counter)
        associatedData.withUnsafeBytes(authenticate)
        return [UInt8](unsafeUninitializedCapacity: plain.count + Self.tagByteCount) { buffer, initialized in
            guard let output = UnsafeMutableRawPointer(buffer.baseAddress) else { return }
            plain.withUnsafeBytes { update($0, into: output) }
            finishSealing(tag: output + plain.count)
            initialized = plain.count + Self.tagByteCount
        }
    }

    /// Decrypts a whole message. Only for decryption.
    ///
    /// - Throws: ``CryptoError/truncated``, ``CryptoError/authenticationFailed``
    public func open(_ sealed: [UInt8], counter: UInt64, associatedData: [UInt8]) throws(CryptoError) -> [UInt8] {
        let count = sealed.count - Self.tagByteCount
        guard count >= 0 else { throw .truncated }
        start(counter)
        associatedData.withUnsafeBytes(authenticate)
        var isAuthentic = false
        let plain = [UInt8](unsafeUninitializedCapacity: max(count, 1)) { buffer, initialized in
            sealed.withUnsafeBytes { sealed in
                guard let output = UnsafeMutableRawPointer(buffer.baseAddress), let tag = sealed.baseAddress.map({ $0 + count }) else {
                    return
                }
                update(UnsafeRawBufferPointer(rebasing: sealed[..<count]), into: output)
                isAuthentic = finishOpening(tag: tag)
            }
            initialized = isAuthentic ? count : 0
        }
        guard isAuthentic else { throw .authenticationFailed }
        return plain
    }
}
