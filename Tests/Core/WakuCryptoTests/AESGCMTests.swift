import TestSupport
import Testing

@testable import WakuCrypto

@Suite struct AESGCMTests {
    struct Known: Sendable, CustomTestStringConvertible {
        let number: Int
        let key: [UInt8]
        let nonce: [UInt8]
        let plain: [UInt8]
        var associatedData: [UInt8] = []
        let cipher: [UInt8]
        let tag: [UInt8]
        var testDescription: String { "test case \(number)" }

        func sealed(_ layout: AESGCM.Layout) -> [UInt8] {
            layout == .nonceFirst ? nonce + cipher + tag : cipher + tag + nonce
        }
    }

    private static let key = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308")
    private static let plain = hex(
        """
        d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
        1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255
        """)
    private static let cipher = hex(
        """
        522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
        8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad
        """)

    /// McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B: those with 256-bit keys and 96-bit nonces.
    private static let published = [
        Known(
            number: 13, key: [UInt8](repeating: 0, count: 32), nonce: [UInt8](repeating: 0, count: 12), plain: [], cipher: [],
            tag: hex("530f8afbc74536b9a963b4f1c4cb738b")),
        Known(
            number: 14, key: [UInt8](repeating: 0, count: 32), nonce: [UInt8](repeating: 0, count: 12),
            plain: [UInt8](repeating: 0, count: 16), cipher: hex("cea7403d4d606b6e074ec5d3baf39d18"),
            tag: hex("d0d1c8a799996bf0265b98b5d48ab919")),
        Known(
            number: 15, key: key, nonce: hex("cafebabefacedbaddecaf888"), plain: plain, cipher: cipher,
            tag: hex("b094dac5d93471bdec1a502270e3cc6c")),
        Known(
            number: 16, key: key, nonce: hex("cafebabefacedbaddecaf888"), plain: Array(plain.prefix(60)),
            associatedData: hex("feedfacedeadbeeffeedfacedeadbeefabaddad2"), cipher: Array(cipher.prefix(60)),
            tag: hex("76fc6ece0f4e1768cddf8853bb2d551b")),
    ]
    private static let layouts = [AESGCM.Layout.nonceFirst, .nonceLast]

    @Test(arguments: published, layouts)
    func sealsAndOpensAsPublished(_ known: Known, layout: AESGCM.Layout) throws {
        let key = try #require(SymmetricKey(bytes: known.key))
        let sealed = AESGCM.seal(known.plain, key: key, nonce: known.nonce, layout: layout, associatedData: known.associatedData)
        #expect(sealed == known.sealed(layout))
        #expect(try AESGCM.open(sealed, key: key, layout: layout, associatedData: known.associatedData) == known.plain)
    }

    @Test(arguments: StatusGoVectors.recorded.primitives.aesGcmEncrypt)
    func sealsAndOpensAsRecorded(_ recorded: StatusGoVectors.Sealed) throws {
        let key = try #require(SymmetricKey(bytes: recorded.key.bytes))
        let sealed = AESGCM.seal(recorded.plaintext.bytes, key: key, nonce: recorded.nonce.bytes, layout: .nonceFirst)
        #expect(sealed == recorded.ciphertext.bytes)
        #expect(try AESGCM.open(sealed, key: key, layout: .nonceFirst) == recorded.plaintext.bytes)
    }

    @Test func symmetricPayloadsAreNonceLastAsRecorded() throws {
        var count = 0
        for payload in StatusGoVectors.recorded.primitives.wakuPayloadV1 where payload.kind == .symmetric {
            guard let bytes = payload.symKey?.bytes, let plain = payload.plain?.bytes, let encoded = payload.encoded?.bytes else {
                continue
            }
            let key = try #require(SymmetricKey(bytes: bytes))
            #expect(try AESGCM.open(encoded, key: key, layout: .nonceLast) == plain, "\(payload)")
            #expect(AESGCM.seal(plain, key: key, nonce: Array(encoded.suffix(12)), layout: .nonceLast) == encoded, "\(payload)")
            count += 1
        }
        #expect(count == 18)
    }

    @Test(arguments: layouts)
    func everyFlippedBitIsFound(_ layout: AESGCM.Layout) throws {
        let key = try #require(SymmetricKey(bytes: Self.key))
        let sealed = AESGCM.seal([1, 2, 3, 4], key: key, layout: layout)
        for position in sealed.indices {
            var altered = sealed
            altered[position] ^= 0x10
            #expect(throws: CryptoError.authenticationFailed) { try AESGCM.open(altered, key: key, layout: layout) }
        }
    }

    @Test(arguments: layouts)
    func inputsShorterThanNonceAndTagAreTruncated(_ layout: AESGCM.Layout) throws {
        let key = try #require(SymmetricKey(bytes: Self.key))
        let sealed = AESGCM.seal([], key: key, layout: layout)
        #expect(sealed.count == 28)
        #expect(try AESGCM.open(sealed, key: key, layout: layout) == [])
        for count in 0..<28 {
            #expect(throws: CryptoError.truncated) { try AESGCM.open(Array(sealed.prefix(count)), key: key, layout: layout) }
        }
    }

    @Test func aShorterCiphertextAnotherKeyOtherDataAndTheOtherLayoutFail() throws {
        let key = try #require(SymmetricKey(bytes: Self.key))
        let other = try #require(SymmetricKey(bytes: Self.key.reversed()))
        let sealed = AESGCM.seal(Self.plain, key: key, layout: .nonceFirst, associatedData: [1])
        let fails = CryptoError.authenticationFailed
        #expect(try AESGCM.open(sealed, key: key, layout: .nonceFirst, associatedData: [1]) == Self.plain)
        #expect(throws: fails) { try AESGCM.open(sealed.dropLast(), key: key, layout: .nonceFirst, associatedData: [1]) }
        #expect(throws: fails) { try AESGCM.open(sealed, key: other, layout: .nonceFirst, associatedData: [1]) }
        #expect(throws: fails) { try AESGCM.open(sealed, key: key, layout: .nonceFirst) }
        #expect(throws: fails) { try AESGCM.open(sealed, key: key, layout: .nonceFirst, associatedData: [2]) }
        #expect(throws: fails) { try AESGCM.open(sealed, key: key, layout: .nonceLast, associatedData: [1]) }
    }

    @Test func everySealingHasItsOwnNonce() throws {
        let key = try #require(SymmetricKey(bytes: Self.key))
        let nonces = (0..<100).map { _ in Array(AESGCM.seal([], key: key, layout: .nonceFirst).prefix(12)) }
        #expect(Set(nonces).count == 100)
    }

    @Test(arguments: [0, 16, 31, 33])
    func keysOfAnotherLengthAreNone(_ count: Int) {
        #expect(SymmetricKey(bytes: [UInt8](repeating: 1, count: count)) == nil)
    }
}
