import Foundation
import Logging
import TestSupport
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

    @Test func controlCharactersAreEscapedInJSON() throws {
        let texts = ["a\u{9B}2J\u{7F}", "\u{202E}desrever\u{2066}\u{2028}\u{FEFF}", "\u{E0001}tag", "plain, ünïcode 🙂 \"\\\u{1B}\n"]
        let json = try printed { try Output.json(texts) }
        #expect(json.contains(#"a\u009b2J\u007f"#) && json.contains(#"\udb40\udc01tag"#) && json.contains("plain, ünïcode 🙂"))
        for character in json.unicodeScalars where character != "\n" {
            #expect(![.control, .format, .lineSeparator].contains(character.properties.generalCategory), "\(json)")
        }
        #expect(try JSONDecoder().decode([String].self, from: Data(json.utf8)) == texts)
        let line = LineLogHandler.line([("message", texts[0])], fields: [("reason", .string(texts[1]))], format: .json)
        let members = try JSONDecoder().decode([String: String].self, from: Data(line.utf8))
        #expect(members == ["message": texts[0], "reason": texts[1]] && line.utf8.allSatisfy { $0 < 0x7F })
    }

    /// Text of clients, peers, files and databases must not reach the terminal as control characters.
    @Test func everyLineIsPrintable() {
        let hostile = "\u{1B}[31mred\n\u{9B}2J"
        let texts = [
            printed { Output.line(hostile) }, printed { Output.table([hostile], [[hostile]]) },
            printed { Output.fields([(hostile, hostile)]) },
            LineLogHandler.line([("message", hostile)], fields: [("reason", .string(hostile)), ("agent", "\u{1B}c")], format: .text) + "\n",
        ]
        for text in texts {
            #expect(!text.unicodeScalars.contains { $0 != "\n" && $0.properties.generalCategory == .control }, "\(text)")
        }
        #expect(texts.map { $0.count { $0 == "\n" } } == [1, 2, 1, 1])
    }

    @Test(arguments: [
        #""no\e[31msuch\noption": 1"#, #"log-level: "\e[31mloud\n""#, #"relay: "ftp://\e[31m\nhost""#,
        #"gorush-endpoints: [{name: "\e[31m\n", url: "\e[31m", platforms: "\e[2J"}]"#, #"notifications: [{"\e[31m": 1}]"#,
        #"store: "\e[31m\n://""#, #"session-http: "\e[31m\n""#,
    ])
    func valuesOfConfigurationFilesAreEscapedInErrors(yaml: String) async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/waku-push\u{1B}[31m.yaml"
        try yaml.write(toFile: path, atomically: true, encoding: .utf8)
        let ended = try await run(["config", "check", "--config", path])
        #expect([64, 65].contains(ended.status), "\(ended.status)")
        #expect(!ended.errors.isEmpty && !ended.errors.contains("\u{1B}"), "\(ended.errors)")
        #expect(ended.errors.split(separator: "\n").allSatisfy { $0.hasPrefix("waku-push: ") }, "\(ended.errors)")
    }

    @Test(arguments: [["admin", "registrations", "show", "\u{1B}[31m\nx"], ["serve", "--relay", "\u{1B}[31m"], ["\u{1B}[31m"]])
    func argumentsAreEscapedInErrors(arguments: [String]) async throws {
        let ended = try await run(arguments)
        #expect(ended.status == 64 && !ended.errors.contains("\u{1B}"), "\(ended.errors)")
        #expect(ended.errors.split(separator: "\n").allSatisfy { $0.hasPrefix("waku-push: ") }, "\(ended.errors)")
    }

    // MARK: Log

    @Test func numbersOfMetadataAreNumbersInJSON() {
        let fields: [(name: String, value: Logger.MetadataValue)] = [
            ("count", .stringConvertible(3)), ("share", .stringConvertible(0.5)), ("cut-short", .stringConvertible(true)),
            ("key", "0123"), ("infinite", .stringConvertible(Double.infinity)),
        ]
        let head = [("message", "node started")]
        #expect(
            LineLogHandler.line(head, fields: fields, format: .json)
                == #"{"message":"node started","count":3,"share":0.5,"cut-short":true,"key":"0123","infinite":"inf"}"#)
        #expect(
            LineLogHandler.line(head, fields: fields, format: .text)
                == "node started count=3 share=0.5 cut-short=true key=0123 infinite=inf")
    }

    @Test func theJournalIsRecognizedByDeviceAndInode() {
        #expect(JournalStream.matches("8:1234", device: 8, inode: 1234))
        for other in [nil, "", "8", "8:1235", "9:1234", "8:1234:0", "8:", "a:b"] {
            #expect(!JournalStream.matches(other, device: 8, inode: 1234), "\(other ?? "nil")")
        }
        #expect(Logger.Level.allCases.map(\.journalPriority) == [7, 7, 6, 5, 4, 3, 2])
    }
}
