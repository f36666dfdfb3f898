import NIOCore
import Core
import Testing

@testable import LibP2P

@Suite struct EncodingTests {
    /// multiformats/unsigned-varint.
    @Test(
        arguments: [
            (1, [1]), (127, [0x7F]), (128, [0x80, 1]), (255, [0xFF, 1]), (300, [0xAC, 2]), (16_384, [0x80, 0x80, 1]),
            (UInt64(Int64.max), [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
        ] as [(UInt64, [UInt8])])
    func varints(value: UInt64, bytes: [UInt8]) throws {
        var buffer = ByteBuffer()
        buffer.writeVarint(value)
        #expect(Array(buffer: buffer) == bytes)
        let read = try #require(try buffer.getVarint())
        #expect(read.value == value && read.byteCount == bytes.count)
        #expect(try ByteBuffer(bytes: bytes.dropLast()).getVarint() == nil)
    }

    @Test(arguments: [[0x80, 0], [0xFF, 0x80, 0], [UInt8](repeating: 0x80, count: 9) + [1]] as [[UInt8]])
    func varintsOfTheWrongLengthAreRefused(bytes: [UInt8]) {
        #expect(throws: VarintError.malformed) { try ByteBuffer(bytes: bytes).getVarint() }
    }
}
