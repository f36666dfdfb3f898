import Testing
import WakuCrypto

@Suite struct BytesTests {
    @Test func digitsAreWrittenLowerCaseAndReadInEitherCase() {
        let all = Array(UInt8.min ... .max)
        let digits = hexString(all)
        #expect(digits.hasPrefix("000102") && digits.hasSuffix("fdfeff"))
        #expect(bytes(hex: digits) == all)
        #expect(bytes(hex: digits.uppercased()) == all)
        #expect(bytes(hex: "") == [])
        #expect(hexString([]) == "")
    }

    @Test(arguments: ["0", "abc", "0x", "0g", "g0", " 00", "00 ", "-1", "０0", "é"])
    func whatIsNotPairsOfDigitsIsRefused(_ digits: String) {
        #expect(bytes(hex: digits) == nil)
    }

    @Test(arguments: ["/", ":", "@", "G", "`", "g"])
    func theNeighboursOfDigitsAreNone(_ character: Character) throws {
        #expect(hexNibble(try #require(character.asciiValue)) == nil)
    }

    @Test func equalityInConstantTimeIsEquality() {
        #expect(constantTimeEqual([], []))
        #expect(constantTimeEqual([1, 2, 3], [1, 2, 3]))
        #expect(!constantTimeEqual([1, 2, 3], [1, 2, 4]))
        #expect(!constantTimeEqual([1, 2, 3], [0, 2, 3]))
        #expect(!constantTimeEqual([1, 2, 3], [1, 2]))
        #expect(!constantTimeEqual([], [0]))
    }

    @Test func randomBytesAreAsManyAsAskedForAndNewEachTime() {
        #expect(randomBytes(0).isEmpty)
        #expect(randomBytes(33).count == 33)
        #expect(randomBytes(16) != randomBytes(16))
    }
}
