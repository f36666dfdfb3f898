import TestSupport
import Testing

@testable import WakuCrypto

@Suite struct DigestTests {
    struct Known: Sendable, CustomTestStringConvertible {
        let input: [UInt8]
        let digest: String
        var testDescription: String { "\(input.count) bytes" }
    }

    /// Bytes 0, 1, … 250, 0, 1, …
    private static func counting(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8($0 % 251) }
    }

    @Test(arguments: [
        Known(input: [], digest: "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        Known(input: Array("abc".utf8), digest: "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
        Known(input: counting(1), digest: "bc36789e7a1e281436464229828f817d6612f7b477d66591ff96a9e064bcc98a"),
        Known(input: counting(135), digest: "cbdfd9dee5faad3818d6b06f95a219fd290b0e1706f6a82e5a595b9ce9faca62"),
        Known(input: counting(136), digest: "7ce759f1ab7f9ce437719970c26b0a66ff11fe3e38e17df89cf5d29c7d7f807e"),
        Known(input: counting(137), digest: "ac73d4fae68b8453f764007c1a20ce95994187861f0c3227a3a8e99a73a3b1db"),
        Known(input: counting(271), digest: "27eceb59ebc3dc8a04a5b135be641591a7278540e4556a2ba9f408194e666ec3"),
        Known(input: counting(272), digest: "8e2476e65823b24d96ebe239f2c1534cdf763e689e2410c3b1cb0c74e6177bfc"),
        Known(input: counting(273), digest: "3f02f134370e4debb95140ef49ddd3aed8c65ff1ed83a43f1b269421f179c5f9"),
        Known(input: counting(1000), digest: "af692982e84a5a9688359025660a7857cd28ee7c8d867cfa1677baf2e6d1f63b"),
    ])
    func keccak256IsTheOriginalKeccakAroundEveryBlockEdge(_ known: Known) {
        #expect(hexString(Keccak256.hash(known.input)) == known.digest)
    }

    @Test func keccak256OfASliceTakesTheSliceAlone() {
        let bytes = Self.counting(300)
        #expect(Keccak256.hash(bytes[7..<150]) == Keccak256.hash(Array(bytes[7..<150])))
        #expect(Keccak256.hash(bytes[5..<5]) == Keccak256.hash([]))
    }

    @Test(arguments: StatusGoVectors.recorded.primitives.hashes)
    func digestsAreTheRecordedOnes(_ recorded: StatusGoVectors.Digests) {
        #expect(Keccak256.hash(Array(recorded.inputUtf8.utf8)) == recorded.keccak256.bytes)
        #expect(Shake256.hash64(Array(recorded.inputUtf8.utf8)) == recorded.shake25664.bytes)
    }

    // FIPS 180-4, examples.
    @Test(arguments: [
        Known(input: [], digest: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        Known(input: Array("abc".utf8), digest: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        Known(
            input: Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8),
            digest: "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
    ])
    func sha256IsThePublishedOne(_ known: Known) {
        #expect(hexString(SHA256.hash(known.input)) == known.digest)
    }

    @Test func sha256OfPartsIsThatOfTheWhole() {
        #expect(SHA256.hash([1, 2], [], [3]) == SHA256.hash([1, 2, 3]))
        #expect(SHA256.hash() == SHA256.hash([]))
    }

    // NIST's example of 1600 bits, and the empty message.
    @Test(arguments: [
        Known(
            input: [],
            digest:
                "46b9dd2b0ba88d13233b3feb743eeb243fcd52ea62b81b82b50c27646ed5762fd75dc4ddd8c0f200cb05019d67b592f6fc821c49479ab48640292eacb3b7c4be"
        ),
        Known(
            input: [UInt8](repeating: 0xA3, count: 200),
            digest:
                "cd8a920ed141aa0407a22d59288652e9d9f1a7ee0c1e7c1ca699424da84a904d2d700caae7396ece96604440577da4f3aa22aeb8857f961c4cd8e06f0ae6610b"
        ),
    ])
    func shake256IsThePublishedOne(_ known: Known) {
        #expect(hexString(Shake256.hash64(known.input)) == known.digest)
    }

    @Test func shake256SqueezesAsMuchAsIsAskedFor() {
        let long = Shake256.hash([], byteCount: 512)
        #expect(Array(long.prefix(64)) == Shake256.hash64([]))
        #expect(hexString(long.suffix(32)) == "ab0bae316339894304e35877b0c28a9b1fd166c796b9cc258a064a8f57e27f2a")
    }

    struct KnownTag: Sendable {
        let key: [UInt8]
        let message: [UInt8]
        let tag: String
    }

    // RFC 4231, test cases 1–4, 6 and 7.
    @Test(arguments: [
        KnownTag(
            key: [UInt8](repeating: 0x0b, count: 20), message: Array("Hi There".utf8),
            tag: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
        KnownTag(
            key: Array("Jefe".utf8), message: Array("what do ya want for nothing?".utf8),
            tag: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        KnownTag(
            key: [UInt8](repeating: 0xaa, count: 20), message: [UInt8](repeating: 0xdd, count: 50),
            tag: "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
        KnownTag(
            key: Array(1...25), message: [UInt8](repeating: 0xcd, count: 50),
            tag: "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
        KnownTag(
            key: [UInt8](repeating: 0xaa, count: 131), message: Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
            tag: "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
        KnownTag(
            key: [UInt8](repeating: 0xaa, count: 131),
            message: Array(
                ("This is a test using a larger than block-size key and a larger than block-size data. "
                    + "The key needs to be hashed before being used by the HMAC algorithm.").utf8),
            tag: "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"),
    ])
    func hmacIsThePublishedOne(_ known: KnownTag) {
        let tag = known.key.withUnsafeBufferPointer { key in
            known.message.withUnsafeBufferPointer { HMACSHA256.tag(key: key, of: $0) }
        }
        #expect(hexString(tag) == known.tag)
    }
}
