import Foundation
import TestSupport
import Testing

@testable import Core

@Suite struct JSONValueTests {
    @Test(arguments: [
        "", " ", "{", "nothing", "{}}", "{}{}", "{'a':1}", "[1,]", "{\"a\":1,}", "{\"a\"}", "01", "-", "1.", ".5", "1e", "+1", "NaN",
        "Infinity",
        "\"", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"\u{1}\"", "tru", "[1 2]", "\u{0}", "nullx",
    ])
    func malformedTextIsRefused(text: String) {
        #expect(throws: JSONValue.SyntaxError.self) { try JSONValue(parsing: text.utf8) }
    }

    @Test func invalidUTF8IsRefused() {
        #expect(throws: JSONValue.SyntaxError.self) { try JSONValue(parsing: [0x22, 0xFF, 0x22]) }
        #expect(throws: JSONValue.SyntaxError.self) { try JSONValue(parsing: [0xFF, 0xFE, 0x7B, 0x7D]) }
    }

    @Test func stringsAreUnescaped() throws {
        let value = try JSONValue(parsing: #" "a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00ü" "#.utf8)
        #expect(value.text == "a\"\\/\u{8}\u{C}\n\r\té😀ü")
    }

    @Test func numbersStayAsWritten() throws {
        let huge = String(repeating: "9", count: 5000)
        #expect(try JSONValue(parsing: huge.utf8).integer == nil)
        #expect(try JSONValue(parsing: "9223372036854775807".utf8).integer == .max)
        #expect(try JSONValue(parsing: "9223372036854775808".utf8).integer == nil)
        #expect(try JSONValue(parsing: "18446744073709551615".utf8).unsignedInteger == .max)
        #expect(try JSONValue(parsing: "-5".utf8).integer == -5)
        #expect(try JSONValue(parsing: "-5".utf8).unsignedInteger == nil)
        for text in ["1.0", "1e3", "1E+2", "0.1e-400"] { #expect(try JSONValue(parsing: text.utf8).integer == nil) }
    }

    @Test func lastOfEqualNamesCounts() throws {
        #expect(try JSONValue(parsing: #"{"a":1,"a":2}"#.utf8).object?["a"]?.integer == 2)
    }

    @Test func nullIsAsMissing() throws {
        #expect(try JSONValue(parsing: #"{"a":null}"#.utf8).object?["a"] == nil)
    }

    @Test func deepNestingIsRefused() throws {
        func nested(_ depth: Int) -> [UInt8] { Array((String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8) }
        _ = try JSONValue(parsing: nested(64))
        #expect(throws: JSONValue.SyntaxError.self) { try JSONValue(parsing: nested(65)) }
        #expect(throws: JSONValue.SyntaxError.self) { try JSONValue(parsing: nested(49_000)) }
        let objects = String(repeating: "{\"a\":", count: 30_000)
        #expect(throws: JSONValue.SyntaxError.self) { try JSONValue(parsing: objects.utf8) }
    }

    /// Within the common subset, Foundation's reader accepts nothing that this reader refuses, and reads the same strings.
    @Test func readerAgreesWithFoundation() throws {
        var random = SeededGenerator(seed: 18)
        let seeds = [
            #"{"pubkey":"05ab","namespaces":[0,11],"service_info":{"token":"a\u0062"},"sig_ts":1700000000,"data":true}"#,
            #"{"a":[1,-2.5e3,"é\u00e9",{"b":null,"c":[true,false]}]}"#, #"["\ud83d\ude00",""]"#,
        ]
        var taken = 0
        for _ in 0..<3000 {
            let bytes = random.damaged(Array(random.pick(seeds).utf8))
            let value = try? JSONValue(parsing: bytes)
            let other = try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
            if value != nil { taken += 1 }
            if let value, other == nil { Issue.record("\(value) is refused by Foundation") }
            if let array = value?.array, let others = other as? [Any] {
                #expect(array.map(\.text) == others.map { $0 as? String })
            }
        }
        #expect(taken > 0)
    }
}
