import COpenSSL

/// SHA-256 (FIPS 180-4).
public enum SHA256 {
    /// Length of a digest in bytes.
    public static let byteCount = 32

    private static let contexts = ThreadContexts.digests()

    /// Hashes the concatenated parts.
    public static func hash(_ parts: [UInt8]...) -> [UInt8] { hash(parts) }

    /// Hashes the concatenated parts.
    public static func hash(_ parts: [[UInt8]]) -> [UInt8] {
        contexts.digest(parts, by: .sha256, byteCount: byteCount) { require(EVP_DigestFinal_ex($0, $1, nil)) }
    }

    /// Hashes data that is not secret, without an allocation.
    ///
    /// - Precondition: The output has room for 32 bytes.
    public static func hash(_ bytes: ArraySlice<UInt8>, into output: UnsafeMutableRawBufferPointer) {
        precondition(output.count >= byteCount)
        contexts.withContext { context in
            require(EVP_DigestInit_ex2(context, Algorithm.sha256.pointer, nil))
            bytes.withUnsafeBytes { require(EVP_DigestUpdate(context, $0.baseAddress, $0.count)) }
            require(EVP_DigestFinal_ex(context, output.baseAddress?.assumingMemoryBound(to: UInt8.self), nil))
        }
    }

    /// Hashes a secret.
    ///
    /// - Parameter output: 32 bytes.
    static func hash(_ input: UnsafeBufferPointer<UInt8>, into output: UnsafeMutableRawPointer) {
        waku_sha256(input.baseAddress, input.count, output.assumingMemoryBound(to: UInt8.self))
    }
}

/// SHAKE-256 (FIPS 202), squeezed to the length that Status' protocol uses.
public enum Shake256 {
    private static let contexts = ThreadContexts.digests()

    /// SHAKE-256 squeezed to 64 bytes, the only length that Status' protocol uses.
    public static func hash64(_ bytes: [UInt8]) -> [UInt8] {
        hash(bytes, byteCount: 64)
    }

    static func hash(_ bytes: [UInt8], byteCount: Int) -> [UInt8] {
        contexts.digest([bytes], by: .shake256, byteCount: byteCount) { require(EVP_DigestFinalXOF($0, $1, byteCount)) }
    }
}

/// FIPS 202. Not Keccak-256, which pads with 0x01 instead of 0x06: see ``Keccak256``.
public enum SHA3 {
    /// Length of a SHA3-256 digest in bytes.
    public static let byteCount = 32

    private static let contexts = ThreadContexts.digests()

    /// SHA3-256 of data that is not secret.
    public static func hash256(_ bytes: [UInt8]) -> [UInt8] {
        contexts.digest([bytes], by: .sha3256, byteCount: byteCount) { require(EVP_DigestFinal_ex($0, $1, nil)) }
    }
}

extension ThreadContexts {
    /// A context that changes its algorithm is slower, so each algorithm has its own contexts.
    fileprivate func digest(
        _ parts: [[UInt8]], by algorithm: Algorithm, byteCount: Int, _ finish: (OpaquePointer, UnsafeMutablePointer<UInt8>?) -> Void
    ) -> [UInt8] {
        withContext { context in
            require(EVP_DigestInit_ex2(context, algorithm.pointer, nil))
            for part in parts { require(EVP_DigestUpdate(context, part, part.count)) }
            return [UInt8](unsafeUninitializedCapacity: byteCount) { buffer, initialized in
                finish(context, buffer.baseAddress)
                initialized = byteCount
            }
        }
    }
}
