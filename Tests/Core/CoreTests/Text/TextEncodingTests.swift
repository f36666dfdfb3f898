import Foundation
import TestSupport
import Testing
import Core

@Suite struct TextEncodingTests {
    /// draft-msporny-base58-03, test vectors.
    @Test(arguments: [
        (Array("Hello World!".utf8), "2NEpo7TZRRrLZSi2U"),
        (Array("The quick brown fox jumps over the lazy dog.".utf8), "USm3fpXnKG5EUBx2ndxBDMPVciP5hGey2Jh4NDv6gmeo1LkMeiKrLJUUBk6Z"),
        (hex("0000287fb4cd"), "11233QC4"), ([], ""), ([0, 0], "11"),
    ])
    func base58(bytes: [UInt8], text: String) {
        #expect(Base58.encode(bytes) == text)
        #expect(Base58.decode(text) == bytes)
    }

    @Test(arguments: ["0", "O", "I", "l", "a b", "é"])
    func invalidBase58IsRefused(text: String) {
        #expect(Base58.decode(text) == nil)
    }

    /// RFC 4648, section 10.
    @Test(arguments: [
        ("", ""), ("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foob", "mzxw6yq"), ("fooba", "mzxw6ytb"), ("foobar", "mzxw6ytboi"),
    ])
    func base32(plain: String, text: String) {
        #expect(Base32.encode(plain.utf8) == text)
        #expect(Base32.decode(text) == Array(plain.utf8))
    }

    @Test(arguments: ["m", "mz", "mzx", "MY", "my=", "m1"])
    func invalidBase32IsRefused(text: String) {
        #expect(Base32.decode(text) == nil)
    }

    @Test func nodeListsMayUseUpperCaseAndTheAlphabetForURLs() {
        #expect(Base32.decode("MZXW6YTBOI", acceptsUpperCase: true) == Array("foobar".utf8))
        #expect(Base32.decode("mzxw6ytb", acceptsUpperCase: true) == Array("fooba".utf8))
        #expect(Base32.decode("", acceptsUpperCase: true) == [])
        for text in ["A", "MZ1", "AB"] { #expect(Base32.decode(text, acceptsUpperCase: true) == nil) }
        #expect(Base64.decodeURL("Zm9vYmE".utf8) == Array("fooba".utf8))
        #expect(Base64.decodeURL("-_8".utf8) == [0xFB, 0xFF])
        #expect(Base64.decodeURL("Zm9vY".utf8) == nil && Base64.decodeURL("Zg==".utf8) == nil && Base64.decodeURL("+/8".utf8) == nil)
    }

    @Test func base64AgreesWithFoundation() {
        var random = SeededGenerator(seed: 1)
        for count in 0..<300 {
            let bytes = random.bytes(count)
            let text = Base64.encode(bytes)
            #expect(text == Array(Data(bytes).base64EncodedString().utf8))
            text.withUnsafeBufferPointer { #expect(Base64.decode($0) == bytes) }
            let damaged = random.damaged(text)
            // Foundation accepts one pad too many.
            let expected = damaged.count.isMultiple(of: 4) ? Data(base64Encoded: Data(damaged)).map(Array.init) : nil
            damaged.withUnsafeBufferPointer { #expect(Base64.decode($0) == expected, "\(String(decoding: damaged, as: UTF8.self))") }
        }
    }
}
