import Core
import Testing

@Suite struct VarintTests {
    /// multiformats/unsigned-varint.
    @Test(
        arguments: [
            (0, [0]), (1, [1]), (127, [0x7F]), (128, [0x80, 1]), (255, [0xFF, 1]), (300, [0xAC, 2]), (16_384, [0x80, 0x80, 1]),
            (UInt64(Int64.max), [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
        ] as [(UInt64, [UInt8])])
    func writtenAndRead(value: UInt64, bytes: [UInt8]) throws {
        var written: [UInt8] = []
        Varint.append(value, to: &written)
        #expect(written == bytes)
        #expect(Varint.byteCount(value) == bytes.count)
        var rest = (bytes + [9])[...]
        #expect(try Varint.take(from: &rest) == value && rest == [9])
        var reader = ProtobufReader(bytes)
        #expect(try reader.varint() == value && reader.isAtEnd)
    }

    @Test func theLargestVarintHasTenBytesAndIsNoMultiformatsVarint() throws {
        var written: [UInt8] = []
        Varint.append(.max, to: &written)
        #expect(written.count == 10 && Varint.byteCount(.max) == 10)
        var reader = ProtobufReader(written)
        #expect(try reader.varint() == .max)
        #expect(throws: VarintError.malformed) {
            var rest = written[...]
            _ = try Varint.take(from: &rest)
        }
    }

    @Test(arguments: [[], [0x80], [0x80, 0], [0xFF, 0x80, 0], [UInt8](repeating: 0x80, count: 9) + [1]] as [[UInt8]])
    func incompleteNonMinimalAndLongVarintsAreRefused(bytes: [UInt8]) {
        var rest = bytes[...]
        #expect(throws: VarintError.malformed) { try Varint.take(from: &rest) }
    }

    /// Protobuf decoders accept them.
    @Test func nonMinimalVarintsAreReadInProtobufs() throws {
        var reader = ProtobufReader([0xFF, 0x80, 0])
        #expect(try reader.varint() == 127 && reader.isAtEnd)
    }
}
