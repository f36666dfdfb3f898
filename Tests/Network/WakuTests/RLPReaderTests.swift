import Testing

@testable import Waku

@Suite struct RLPReaderTests {
    private func list(_ items: [UInt8]) -> [UInt8] {
        items.count <= 55 ? [0xC0 + UInt8(items.count)] + items : [0xF8, UInt8(items.count)] + items
    }

    private func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8($0 % 100) } }

    @Test(
        arguments: [
            ([0x00], 1), ([0x7F], 1), ([0x80], 0), ([0x81, 0x80], 1), ([0x83, 1, 2, 3], 3),
        ] as [([UInt8], Int)])
    func stringsAreRead(item: [UInt8], count: Int) throws {
        var reader = try #require(RLPReader(listIn: list(item)))
        #expect(reader.string().map(Array.init) == Array(item.suffix(count)))
        #expect(reader.isAtEnd)
    }

    @Test(arguments: [54, 55, 56, 57, 200]) func stringsOfAnyLengthAreRead(count: Int) throws {
        let item = (count <= 55 ? [0x80 + UInt8(count)] : [0xB8, UInt8(count)]) + bytes(count)
        var reader = try #require(RLPReader(listIn: list(item)))
        #expect(reader.string().map(Array.init) == bytes(count))
        #expect(reader.isAtEnd)
    }

    @Test func nothingFollowsTheLastItem() throws {
        var reader = try #require(RLPReader(listIn: [0xC1, 0x05]))
        #expect(reader.skip() == [5])
        #expect(reader.isAtEnd)
        #expect(reader.skip() == nil)
        #expect(reader.string() == nil)
    }

    @Test func nestedListsAreSkippedAndAreNoStrings() throws {
        var reader = try #require(RLPReader(listIn: [0xC4, 0xC2, 0x01, 0x02, 0x03]))
        #expect(reader.string() == nil)
        #expect(reader.skip() == [1, 2])
        #expect(reader.string() == [3])
    }

    @Test(arguments: [[], [0x05], [0x81, 0x80], [0xC1], [0xC0, 0x00], [0xF8], [0xF8, 0x05, 0x01], [0xFA, 0, 0, 0]] as [[UInt8]])
    func bytesThatAreNotOneWholeListAreRefused(bytes: [UInt8]) {
        #expect(RLPReader(listIn: bytes) == nil)
    }

    @Test(arguments: [[0xC1, 0x81], [0xC2, 0x82, 0x01], [0xC1, 0xB8], [0xC2, 0xB8, 0x01]] as [[UInt8]])
    func truncatedItemsAreRefused(bytes: [UInt8]) throws {
        var reader = try #require(RLPReader(listIn: bytes))
        #expect(reader.skip() == nil)
    }
}
