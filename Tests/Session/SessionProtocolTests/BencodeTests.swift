import TestSupport
import Testing

@testable import SessionProtocol

@Suite struct BencodeTests {
    private func parse(_ text: String, limit: Int = 100) throws -> BencodeValue {
        try BencodeValue(parsing: Array(text.utf8)[...], maximumValueCount: limit)
    }

    @Test(arguments: [
        "i0e", "i-5e", "i9223372036854775807e", "i-9223372036854775808e", "0:", "3:abc", "le", "li1e2:abe", "de", "d1:ai1e1:bl1:cee",
        "d0:i1ee",
    ])
    func valuesAreWrittenAsRead(text: String) throws {
        #expect(String(decoding: try parse(text).encoded(), as: UTF8.self) == text)
    }

    @Test(arguments: [
        ("", BencodeValue.ParsingError.truncated), ("i", .truncated), ("ie", .malformed), ("i-e", .malformed), ("i01e", .malformed),
        ("i-0e", .malformed), ("i-9223372036854775809e", .malformed), ("i--1e", .malformed), ("i1", .truncated),
        ("i9223372036854775808e", .malformed), ("i1x", .malformed),
        ("i999999999999999999999999e", .malformed), ("5:abc", .truncated), ("05:abcde", .malformed), ("-1:a", .malformed),
        ("5", .truncated),
        ("99999999999999999999:x", .malformed), ("9999999999:x", .truncated), ("l", .truncated), ("d", .truncated), ("d1:a", .truncated),
        ("di1ei2ee", .malformed), ("d1:bi1e1:ai1ee", .unsortedKey), ("d1:ai1e1:ai1ee", .unsortedKey), ("i1ei2e", .trailingBytes),
        ("x", .malformed), ("e", .malformed), ("lx", .malformed),
    ])
    func malformedValuesAreRefused(text: String, error: BencodeValue.ParsingError) {
        #expect(throws: error) { try parse(text) }
    }

    @Test func depthIsBounded() throws {
        func nested(_ depth: Int) -> String { String(repeating: "l", count: depth) + String(repeating: "e", count: depth) }
        _ = try parse(nested(20))
        #expect(throws: BencodeValue.ParsingError.tooDeep) { try parse(nested(22)) }
        #expect(throws: BencodeValue.ParsingError.tooDeep) { try parse(String(repeating: "l", count: 500_000), limit: .max) }
        #expect(throws: BencodeValue.ParsingError.tooDeep) { try parse(String(repeating: "d1:a", count: 100_000), limit: .max) }
    }

    @Test func numberOfValuesIsBounded() throws {
        _ = try parse("l" + String(repeating: "le", count: 99) + "e")
        #expect(throws: BencodeValue.ParsingError.tooManyValues) { try parse("l" + String(repeating: "le", count: 100) + "e") }
    }

    @Test func prefixLeavesTheRest() throws {
        let (value, rest) = try BencodeValue.parsePrefix([0x6C, 0x65, 0, 0], maximumValueCount: 1)
        #expect(value == .list([]) && rest == [0, 0])
    }

    @Test func keysAreWrittenInOrderOfBytes() {
        let value = BencodeValue.dictionary([
            "t": .integer(1), "P": .integer(2), "aa": .integer(3), "a": .integer(4), "\u{e9}": .integer(5),
        ])
        #expect(String(decoding: value.encoded(), as: UTF8.self) == "d1:Pi2e1:ai4e2:aai3e1:ti1e2:éi5ee")
    }

    @Test func mutatedValuesAreReadAsTheyAreWritten() {
        var random = SeededGenerator(seed: 7)
        let seeds = [
            SessionVectors.derived.notifyMessageBencodeHex.bytes, Array("li1e2:abd1:ai1e1:bleee".utf8), Array("d1:ad1:bd1:cleeee".utf8),
        ]
        var taken = 0
        for _ in 0..<20_000 {
            let bytes = random.damaged(random.pick(seeds))
            guard let value = try? BencodeValue(parsing: bytes[...], maximumValueCount: 100) else { continue }
            taken += 1
            #expect(value.encoded() == bytes)
        }
        #expect(taken > 100)
    }
}
