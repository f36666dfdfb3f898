import Core
import Testing

@Suite struct ProtobufReaderTests {
    private static let strict: ProtobufReader.Refusals = [.groups, .longFieldNumbers]
    /// Field 1 as a group with field 2 and the empty group 3 in it, then field 4 = 5.
    private static let group: [UInt8] = [0x0B, 0x10, 7, 0x1B, 0x1C, 0x0C, 0x20, 5]

    private func numbers(_ bytes: [UInt8], refusing refusals: ProtobufReader.Refusals = []) throws -> [Int] {
        var reader = ProtobufReader(bytes, refusing: refusals)
        var numbers: [Int] = []
        while let field = try reader.next() { numbers.append(field.number) }
        return numbers
    }

    @Test func writtenFieldsAreReadBack() throws {
        var writer = ProtobufWriter()
        writer.field(1, 300 as UInt64)
        writer.field(2, [7, 8] as [UInt8])
        var reader = ProtobufReader(writer.bytes + [0x1D, 1, 2, 3, 4], refusing: Self.strict)
        let first = try #require(try reader.next())
        #expect(first.number == 1 && first.value == .varint(300))
        let second = try #require(try reader.next())
        #expect(second.number == 2)
        #expect(Array(reader.bytes[try second.content()]) == [7, 8])
        let third = try #require(try reader.next())
        #expect(third.number == 3 && third.value == .skipped)
        #expect(try reader.next() == nil)
    }

    @Test(arguments: [[0x08], [0x12, 5, 1], [0x0B], [0x00, 0], [0x0D, 1], [UInt8](repeating: 0xFF, count: 11)] as [[UInt8]])
    func damagedProtobufsAreRefused(bytes: [UInt8]) {
        #expect(throws: ProtobufError.malformed) { try numbers(bytes) }
        #expect(throws: ProtobufError.malformed) { try numbers(bytes, refusing: Self.strict) }
    }

    @Test func groupsAreSkippedUnlessRefused() throws {
        #expect(try numbers(Self.group) == [1, 4])
        #expect(throws: ProtobufError.malformed) { try numbers(Self.group, refusing: .groups) }
        // Without its end tag.
        #expect(throws: ProtobufError.malformed) { try numbers(Array(Self.group.prefix(5))) }
        // An end tag alone.
        #expect(throws: ProtobufError.malformed) { try numbers([0x0C]) }
    }

    @Test func fieldNumbersOverTwentyNineBitsAreReadUnlessRefused() throws {
        let largest: [UInt8] = [0xF8, 0xFF, 0xFF, 0xFF, 0x0F, 1]
        let longer: [UInt8] = [0x80, 0x80, 0x80, 0x80, 0x10, 1]
        #expect(try numbers(largest, refusing: Self.strict) == [1 << 29 - 1])
        #expect(try numbers(longer) == [1 << 29])
        #expect(throws: ProtobufError.malformed) { try numbers(longer, refusing: .longFieldNumbers) }
    }

    @Test func fieldsOfTheWrongTypeOrTooLongAreRefused() throws {
        var writer = ProtobufWriter()
        writer.field(1, true)
        writer.field(2, "abc")
        writer.field(3, [0xFF] as [UInt8])
        var reader = ProtobufReader(writer.bytes)
        let number = try #require(try reader.next())
        #expect(try number.varint() == 1)
        #expect(throws: ProtobufError.malformed) { try number.content() }
        let text = try #require(try reader.next())
        #expect(try text.string(of: reader, limit: 3) == "abc")
        #expect(try text.bytes(of: reader, limit: 3) == Array("abc".utf8))
        #expect(throws: ProtobufError.tooLong) { try text.string(of: reader, limit: 2) }
        #expect(throws: ProtobufError.tooLong) { try text.bytes(of: reader, limit: 2) }
        #expect(throws: ProtobufError.malformed) { try text.varint() }
        let bytes = try #require(try reader.next())
        #expect(throws: ProtobufError.notUTF8) { try bytes.string(of: reader, limit: 9) }
    }

    @Test func nestedMessagesEndWithTheirField() throws {
        var writer = ProtobufWriter()
        writer.field(1) { (nested: inout ProtobufWriter) in nested.zigzagField(2, -3) }
        writer.append([0x18, 1])
        var reader = ProtobufReader(writer.bytes)
        var nested = try #require(try reader.next()).nested(in: reader)
        let inner = try #require(try nested.next())
        #expect(inner.number == 2)
        #expect(unzigzag(try inner.varint()) == -3)
        #expect(try nested.next() == nil && nested.isAtEnd)
        #expect(try reader.next()?.number == 3)
    }
}
