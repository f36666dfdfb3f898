import TestSupport
import Testing

@testable import WakuCrypto

@Suite struct KeyDerivationTests {
    private func bytes(of key: SymmetricKey) -> [UInt8] {
        key.secret.withBytes { Array($0) }
    }

    @Test(arguments: StatusGoVectors.recorded.primitives.pbkdf2)
    func topicKeysAreTheRecordedOnes(_ recorded: StatusGoVectors.TopicKey) {
        #expect(bytes(of: KeyDerivation.topicKey(recorded.password)) == recorded.key.bytes)
    }

    @Test func topicKeysOfOtherTopicsDiffer() {
        #expect(
            hexString(bytes(of: KeyDerivation.topicKey("contact-discovery-0")))
                == "6424e36d45307b5a59e2ceb81aa4ad3d17dff2093920e41a17416088cf113e3a")
        #expect(hexString(bytes(of: KeyDerivation.topicKey(""))) == "ffe46925eca10a1c333a2f37eaea7cafbb7fa5f1f8e097010f93d73ae7fb7e67")
    }

    struct Known: Sendable {
        let secret: [UInt8]
        let salt: [UInt8]
        let purpose: [UInt8]
        let output: [UInt8]
    }

    // RFC 5869, test cases 1–3.
    @Test(arguments: [
        Known(
            secret: [UInt8](repeating: 0x0b, count: 22), salt: Array(0x00...0x0c), purpose: Array(0xf0...0xf9),
            output: hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865")),
        Known(
            secret: Array(0x00...0x4f), salt: Array(0x60...0xaf), purpose: Array(0xb0...0xff),
            output: hex(
                """
                b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09
                da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87
                """)),
        Known(
            secret: [UInt8](repeating: 0x0b, count: 22), salt: [], purpose: [],
            output: hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8")),
    ])
    func hkdfIsThePublishedOne(_ known: Known) {
        let output = known.secret.withUnsafeBufferPointer {
            KeyDerivation.hkdf($0, salt: known.salt, purpose: known.purpose, byteCount: known.output.count)
        }
        #expect(output.withBytes { Array($0) } == known.output)
    }

    @Test func keysForOnePurposeAreHKDFOfTheScalar() throws {
        let key = try PrivateKey(bytes: Array(1...32))
        #expect(
            hexString(bytes(of: key.derivedKey(purpose: "store"))) == "489601fbdc784330150dc14dd81fbc59110bf7d4039d72ba1a41cc26424a2a40")
        #expect(bytes(of: key.derivedKey(purpose: "store")) != bytes(of: key.derivedKey(purpose: "other")))
    }
}
