import Core
import Foundation
import Testing

@Suite("JSON from outside")
struct ForeignJSONTests {
    private struct Value: Codable, Equatable {
        var number: Int64?
        var text: String?
    }

    private func decode(_ text: String, as encoding: String.Encoding = .utf8) throws -> Value {
        try JSONDecoder.decode(Value.self, fromForeign: Array(try #require(text.data(using: encoding))))
    }

    /// Foundation's decoder ends the process at it. A digit fewer than 101 is decoded, or refused by an error.
    private static let deadly = "1" + String(repeating: "0", count: 300) + "e-284"

    @Test(arguments: [
        #"{"number":\#(deadly)}"#, #"{"text":"\"","number": \#(deadly) }"#, #"{"text":"\\","number":-\#(deadly)}"#,
        #"{"number":[0.\#(String(repeating: "1", count: 63))]}"#, "{\"number\":1\0}",
    ])
    func longNumbersAreRefused(text: String) {
        #expect(throws: DecodingError.self) { try decode(text) }
    }

    /// The decoder recognizes these encodings, too.
    @Test(arguments: [String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian, .utf32, .utf32LittleEndian])
    func otherEncodingsAreRefused(encoding: String.Encoding) {
        for text in [#"{"number":\#(Self.deadly)}"#, "{}"] {
            #expect(throws: DecodingError.self) { try decode(text, as: encoding) }
        }
    }

    @Test func ordinaryNumbersAndLongTextsAreDecoded() throws {
        let text = String(repeating: "1", count: 1000) + #"\" \\ e-284"#
        #expect(try decode(#"{"number":-9223372036854775808,"text":"\#(text)"}"#).number == .min)
        #expect(
            try decode(#"{"text":"\#(text)","number":1e3}"#)
                == Value(number: 1000, text: String(repeating: "1", count: 1000) + #"" \ e-284"#))
        #expect(try decode(#"{"number":\#(String(repeating: "1", count: 18)).\#(String(repeating: "0", count: 45))}"#).number != 0)
    }
}
