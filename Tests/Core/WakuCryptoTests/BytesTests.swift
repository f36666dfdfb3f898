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
    func textsOtherThanPairsOfDigitsAreRefused(_ digits: String) {
        #expect(bytes(hex: digits) == nil)
    }

    @Test(arguments: ["/", ":", "@", "G", "`", "g"])
    func theNeighboursOfDigitsAreNotDigits(_ character: Character) throws {
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

    /// Requests cross the ends of a thread's reserve, with counts that do not divide it, on several threads.
    @Test func noRandomBytesAreHandedOutTwice() async {
        var all: [[UInt8]] = []
        await withTaskGroup(of: [[UInt8]].self) { group in
            for _ in 0..<4 {
                group.addTask { (0..<500).map { randomBytes([12, 16, 31, 128, 129][$0 % 5]) } }
            }
            for await some in group { all += some }
        }
        #expect(Set(all.map { $0.prefix(12) }).count == all.count)
        // A byte that is 0 too often was not written.
        let bytes = all.joined()
        #expect(bytes.count { $0 == 0 } < bytes.count / 64)
    }
}
