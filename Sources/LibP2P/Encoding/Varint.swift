public import NIOCore

/// The unsigned varint of multiformats: seven bits a byte, the lowest first, the highest bit says that more follow. At most 9 bytes, and no
/// longer than it must be.
public enum Varint {
    static let byteLimit = 9

    public static func byteCount(_ value: UInt64) -> Int {
        max(1, (UInt64.bitWidth - value.leadingZeroBitCount + 6) / 7)
    }

    static func append(_ value: UInt64, to bytes: inout [UInt8]) {
        var value = value
        while value >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: value) | 0x80)
            value >>= 7
        }
        bytes.append(UInt8(value))
    }

    /// Takes it off the front.
    ///
    /// - Throws: ``VarintError``; there is no more to come, so an unfinished one is `malformed` as well.
    static func take(from bytes: inout ArraySlice<UInt8>) throws(VarintError) -> UInt64 {
        var decoder = Decoder()
        while let byte = bytes.popFirst() {
            if let value = try decoder.value(after: byte) { return value }
        }
        throw .malformed
    }

    fileprivate struct Decoder {
        private var value: UInt64 = 0
        private var count = 0

        /// nil until the last byte.
        mutating func value(after byte: UInt8) throws(VarintError) -> UInt64? {
            guard count < Varint.byteLimit else { throw .malformed }
            value |= UInt64(byte & 0x7F) << UInt64(7 * count)
            count += 1
            guard byte < 0x80 else { return nil }
            guard byte != 0 || count == 1 else { throw .malformed }
            return value
        }
    }
}

public enum VarintError: Error, Hashable, Sendable {
    /// Longer than 9 bytes, or longer than it must be.
    case malformed
}

extension ByteBuffer {
    /// The varint at the reader index and the count of its bytes. nil if it is not all there yet.
    ///
    /// - Throws: ``VarintError``
    public func getVarint() throws(VarintError) -> (value: UInt64, byteCount: Int)? {
        var decoder = Varint.Decoder()
        for (index, byte) in readableBytesView.prefix(Varint.byteLimit + 1).enumerated() {
            if let value = try decoder.value(after: byte) { return (value, index + 1) }
        }
        return nil
    }

    public mutating func writeVarint(_ value: UInt64) {
        var value = value
        while value >= 0x80 {
            writeInteger(UInt8(truncatingIfNeeded: value) | 0x80)
            value >>= 7
        }
        writeInteger(UInt8(value))
    }
}
