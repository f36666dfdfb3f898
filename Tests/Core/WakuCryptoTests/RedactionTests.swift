import Testing

@testable import WakuCrypto

@Suite struct RedactionTests {
    private struct Holder {
        let secret: SecretBytes
        let key: PrivateKey
        let symmetric: SymmetricKey
        let list: [PrivateKey]
        let maybe: SecretBytes?
    }

    /// The value printed in each of Swift's ways.
    private func printed(_ value: some Any) -> [String] {
        var dumped = ""
        dump(value, to: &dumped)
        return ["\(value)", String(describing: value), String(reflecting: value), String(describing: [value]), dumped]
    }

    @Test func secretsPrintAsRedacted() throws {
        let key = try PrivateKey(bytes: Array(1...32))
        for text in printed(SecretBytes([1, 2, 3])) + printed(key) {
            #expect(text.contains("<redacted>"), "\(text)")
        }
        #expect("\(SecretBytes([1, 2, 3]))" == "<redacted>")
        #expect("\(key)" == "<redacted>")
    }

    @Test func noByteOfASecretIsPrintedInsideOfOtherValues() throws {
        let scalar = [UInt8](repeating: 0xAB, count: 32)
        let secret = SecretBytes(scalar)
        let key = try PrivateKey(bytes: scalar)
        let symmetric = try #require(SymmetricKey(bytes: scalar))
        let holder = Holder(secret: secret, key: key, symmetric: symmetric, list: [key], maybe: secret)
        for text in printed(holder) + printed(symmetric) + printed(key) + printed(Optional(secret)) + printed(["key": secret]) {
            #expect(text.contains("<redacted>"), "\(text)")
            // 0xAB in each base in which bytes are printed, with any separators.
            let numbers = text.split { !$0.isNumber }.joined(separator: " ")
            #expect(!numbers.contains("171 171") && !text.lowercased().contains("abab"), "\(text)")
        }
    }

    @Test func secretsAreCopiesOfWhatTheyAreMadeFrom() {
        var bytes: [UInt8] = [1, 2, 3]
        let secret = SecretBytes(bytes)
        bytes[0] = 9
        #expect(secret.count == 3)
        #expect(secret.withBytes { Array($0) } == [1, 2, 3])
        #expect(SecretBytes([]).count == 0)
        #expect(SecretBytes.random(count: 32).withBytes { Array($0) } != SecretBytes.random(count: 32).withBytes { Array($0) })
    }
}
