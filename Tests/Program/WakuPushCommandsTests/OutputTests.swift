import Foundation
import Testing

@testable import WakuPushCommands

struct OutputTests {
    @Test func columnsAreAsWideAsTheirWidestCell() {
        let text = printed { Output.table(["ID", "NAME", "STATE"], [["1", "a-long-name", "apn"], ["1234", "b", ""]]) }
        #expect(
            text == """
                ID    NAME         STATE
                1     a-long-name  apn
                1234  b

                """)
    }

    @Test func aTableWithoutRowsIsItsHeader() {
        #expect(printed { Output.table(["ID", "NAME"], []) } == "ID  NAME\n")
    }

    @Test func valuesOfFieldsAreAligned() {
        let text = printed { Output.fields([("key", "1"), ("longer name", "2"), ("", "3")]) }
        #expect(text == "key          1\nlonger name  2\n             3\n")
        #expect(printed { Output.fields([]) } == "")
    }

    @Test func jsonIsSortedWithISODates() throws {
        struct Row: Encodable {
            let url = "https://a.example/b"
            let at = Date(timeIntervalSince1970: 1_800_000_000)
        }
        let text = try printed { try Output.json([Row()]) }
        #expect(
            text == """
                [
                  {
                    "at" : "2027-01-15T08:00:00Z",
                    "url" : "https://a.example/b"
                  }
                ]

                """)
    }

    @Test(arguments: [
        ("plain, ünïcode 🙂", "plain, ünïcode 🙂"), ("\u{1B}[31mred\r\n", #"\u{1b}[31mred\u{d}\u{a}"#), ("a\u{7F}b", #"a\u{7f}b"#),
        ("a\u{202E}b", #"a\u{202e}b"#), ("a\u{2028}b", #"a\u{2028}b"#), ("", ""),
    ])
    func controlCharactersAreEscaped(text: String, expected: String) {
        #expect(Output.printable(text) == expected)
    }
}
