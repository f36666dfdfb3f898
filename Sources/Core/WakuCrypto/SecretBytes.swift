import COpenSSL

/// Key material. Its memory is wiped when it is freed; it prints as `<redacted>`.
public final class SecretBytes: Sendable, Redacted {
    /// Written only by the initializer, and immutable afterwards, so it is safe to share.
    private nonisolated(unsafe) let memory: UnsafeMutableRawBufferPointer

    /// The memory contains zeros until `fill` overwrites it.
    public init<E: Error>(count: Int, fill: (UnsafeMutableRawBufferPointer) throws(E) -> Void) throws(E) {
        memory = .allocate(byteCount: count, alignment: 8)
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        try fill(memory)
    }

    /// Copies the bytes. The caller's copy is not wiped.
    public convenience init(_ bytes: some Collection<UInt8>) {
        self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
    }

    /// Random bytes of libcrypto's generator for private values.
    public static func random(count: Int) -> SecretBytes {
        SecretBytes(count: count) { require(RAND_priv_bytes($0.baseAddress, Int32(count))) }
    }

    deinit {
        OPENSSL_cleanse(memory.baseAddress, memory.count)
        memory.deallocate()
    }

    /// The number of bytes, which is not secret.
    public var count: Int { memory.count }

    /// Lends the memory to `body`. The pointer is valid only during the call; copies that `body` makes are not wiped.
    public func withBytes<R, E: Error>(_ body: (UnsafeBufferPointer<UInt8>) throws(E) -> R) throws(E) -> R {
        try body(UnsafeBufferPointer(memory.assumingMemoryBound(to: UInt8.self)))
    }
}
