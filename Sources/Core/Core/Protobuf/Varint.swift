// Public although only this package uses it: the compiler inlines and specializes public functions across modules, but not package ones
// (Swift 6.3), which made these 3 to 6 times slower.

/// Unsigned varints: seven bits per byte, lowest first; the highest bit of a byte says that another follows.
///
/// Protobuf and multiformats write them alike. Readers differ: ``ProtobufReader/varint()`` accepts up to 10 bytes and non-minimal forms,
/// ``Decoder`` those of multiformats only.
public enum Varint {
    /// The longest varint of multiformats, in bytes.
    public static let byteLimit = 9

    /// The encoded length in bytes: 1 to 10.
    @inlinable
    public static func byteCount(_ value: UInt64) -> Int {
        max(1, (70 - value.leadingZeroBitCount) / 7)
    }

    /// Appends the shortest form, 1 to 10 bytes. Those of 2^63 and above are longer than multiformats allows.
    @inlinable
    public static func append(_ value: UInt64, to bytes: inout [UInt8]) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// Removes a multiformats varint from the front.
    ///
    /// - Throws: ``VarintError/malformed``, also for one that is not complete.
    @inlinable
    public static func take(from bytes: inout ArraySlice<UInt8>) throws(VarintError) -> UInt64 {
        var decoder = Decoder()
        while let byte = bytes.popFirst() {
            if let value = try decoder.value(after: byte) { return value }
        }
        throw .malformed
    }

    /// Decodes a varint of multiformats/unsigned-varint byte by byte: at most ``byteLimit`` bytes, in its shortest form.
    public struct Decoder {
        @usableFromInline var value: UInt64 = 0
        @usableFromInline var count = 0

        /// A decoder of one varint: create another for the next one.
        @inlinable
        public init() {}

        /// nil until the last byte.
        ///
        /// - Throws: ``VarintError/malformed``
        @inlinable
        public mutating func value(after byte: UInt8) throws(VarintError) -> UInt64? {
            guard count < Varint.byteLimit else { throw .malformed }
            value |= UInt64(byte & 0x7F) << UInt64(7 * count)
            count += 1
            guard byte < 0x80 else { return nil }
            guard byte != 0 || count == 1 else { throw .malformed }
            return value
        }
    }
}

/// Why bytes are not a varint of multiformats.
public enum VarintError: Error, Hashable, Sendable {
    /// Longer than ``Varint/byteLimit``, or not the shortest form.
    case malformed
}
