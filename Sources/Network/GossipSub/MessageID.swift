import WakuCrypto

/// The gossipsub message id: SHA-256 of the data, 32 bytes.
public struct MessageID: Hashable, Sendable, CustomStringConvertible {
    /// The length of an id.
    public static let byteCount = 32

    private let words: SIMD4<UInt64>

    /// nil unless there are 32 bytes: networks other than Waku have ids of other lengths.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        var words = SIMD4<UInt64>()
        withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: bytes) }
        self.words = words
    }

    /// The id of a message: SHA-256 of its data.
    public init(of data: ArraySlice<UInt8>) {
        var words = SIMD4<UInt64>()
        withUnsafeMutableBytes(of: &words) { SHA256.hash(data, into: $0) }
        self.words = words
    }

    /// Calls `body` with the 32 bytes, without copying them. The pointer is valid during the call only.
    public func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R {
        withUnsafeBytes(of: words, body)
    }

    /// The 32 bytes, copied.
    public var bytes: [UInt8] { withBytes { Array($0) } }
    /// 64 lower-case hexadecimal digits.
    public var description: String { hexString(bytes) }
}
