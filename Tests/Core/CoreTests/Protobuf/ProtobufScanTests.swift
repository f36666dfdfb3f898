import Core
import TestSupport
import Testing

@Suite struct ProtobufScanTests {
    /// A field's number, and the bounds of its content if it is length-delimited.
    private func fields(_ bytes: [UInt8], in range: Range<Int>? = nil) throws -> [[Int]] {
        var reader = ProtobufReader(bytes, range ?? bytes.indices, refusing: .groups)
        var found: [[Int]] = []
        while let field = try reader.next() {
            if case .content(let content) = field.value {
                found.append([field.number, content.lowerBound, content.upperBound])
            } else {
                found.append([field.number])
            }
        }
        return found
    }

    @Test func everyWireTypeIsSkipped() throws {
        // A varint, 8 bytes, a length of 2, 4 bytes.
        let bytes = hex("08ac02 11 0102030405060708 1a02 0a0b 25 01020304")
        #expect(try fields(bytes) == [[1], [2], [3, 14, 16], [4]])
        #expect(try fields([]) == [])
    }

    @Test func onlyTheRangeIsScanned() throws {
        let bytes = hex("ffff 0801 ffff")
        #expect(try fields(bytes, in: 2..<4) == [[1]])
        #expect(throws: ProtobufError.malformed) { try fields(bytes, in: 2..<5) }
        // The length reaches beyond the range, though not beyond the bytes.
        #expect(throws: ProtobufError.malformed) { try fields(hex("0a02 0000"), in: 0..<3) }
    }

    @Test(arguments: [
        "00", "08", "0880", "0a", "0a01", "0a02ff", "09", "0901020304050607", "0d", "0d010203", "0b", "0c", "0e", "0f", "80", "0aff",
        "0affffffffffffffffff01", "0a80808080808080808001", "08ffffffffffffffffffff01", "ffffffffffffffffffff7f",
    ])
    func invalidFieldsAndFieldsBeyondTheEndAreMalformed(_ digits: String) {
        #expect(throws: ProtobufError.malformed) { try fields(hex(digits)) }
    }

    @Test func theLongestVarintHasTenBytes() throws {
        #expect(try fields(hex("08ffffffffffffffffff01")).count == 1)
    }

    @Test func theFieldLimitIsInclusive() throws {
        let three = hex("0801 0802 0803")
        try ProtobufScan.check(three, fieldLimit: 3)
        #expect(throws: ProtobufError.tooMany) { try ProtobufScan.check(three, fieldLimit: 2) }
    }

    @Test func nestedFieldsAreCountedInEachMessageOfTheirField() throws {
        // Field 1 twice with two fields each; field 2 with bytes that are not a message.
        let bytes = hex("0a04 08010802 0a04 08010802 1203 ffffff")
        try ProtobufScan.checkNested(bytes, field: 1, fieldLimit: 3, nestedFieldLimit: 2)
        #expect(throws: ProtobufError.tooMany) { try ProtobufScan.checkNested(bytes, field: 1, fieldLimit: 2, nestedFieldLimit: 2) }
        #expect(throws: ProtobufError.tooMany) { try ProtobufScan.checkNested(bytes, field: 1, fieldLimit: 3, nestedFieldLimit: 1) }
        #expect(throws: ProtobufError.malformed) { try ProtobufScan.checkNested(bytes, field: 2, fieldLimit: 3, nestedFieldLimit: 9) }
    }

    @Test func randomBytesNeverTrap() {
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<5000 {
            let bytes = generator.bytes(Int.random(in: 0..<60, using: &generator))
            let total = ((try? fields(bytes)) ?? []).reduce(0) { $1.count == 3 ? $0 + $1[2] - $1[1] : $0 }
            #expect(total <= bytes.count)
        }
    }
}
