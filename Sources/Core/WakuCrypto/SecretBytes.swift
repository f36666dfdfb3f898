import COpenSSL

/// Key material. Its memory is wiped when it is freed; it prints as `<redacted>`.
public final class SecretBytes: Sendable, CustomStringConvertible, CustomReflectable {
    /// Written only by the initializer, and immutable afterwards, so it is safe to share.
    private nonisolated(unsafe) let memory: UnsafeMutableRawBufferPointer

    /// The memory contains zeros until `fill` overwrites it.
    public init<E: Error>(count: Int, fill: (UnsafeMutableRawBufferPointer) throws(E) -> Void) throws(E) {
        memory = .allocate(byteCount: count, alignment: 8)
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        try fill(memory)
    }

    public convenience init(_ bytes: some Collection<UInt8>) {
        self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
    }

    public static func random(count: Int) -> SecretBytes {
        SecretBytes(count: count) { require(RAND_priv_bytes($0.baseAddress, Int32(count))) }
    }

    deinit {
        OPENSSL_cleanse(memory.baseAddress, memory.count)
        memory.deallocate()
    }

    public var count: Int { memory.count }

    public func withBytes<R, E: Error>(_ body: (UnsafeBufferPointer<UInt8>) throws(E) -> R) throws(E) -> R {
        try body(UnsafeBufferPointer(memory.assumingMemoryBound(to: UInt8.self)))
    }

    public var description: String { "<redacted>" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
