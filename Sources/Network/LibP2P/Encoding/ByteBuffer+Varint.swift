import NIOCore
import Core

extension ByteBuffer {
    /// The multiformats varint at the reader index and its length in bytes; nil if it is not complete yet.
    func getVarint() throws(VarintError) -> (value: UInt64, byteCount: Int)? {
        var decoder = Varint.Decoder()
        for (index, byte) in readableBytesView.prefix(Varint.byteLimit + 1).enumerated() {
            if let value = try decoder.value(after: byte) { return (value, index + 1) }
        }
        return nil
    }

    /// Writes without an intermediate array, since every sent message has a length prefix.
    mutating func writeVarint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            writeInteger(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        writeInteger(UInt8(rest))
    }
}
