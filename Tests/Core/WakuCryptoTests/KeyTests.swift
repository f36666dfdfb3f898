import TestSupport
import Testing

@testable import WakuCrypto

@Suite struct KeyTests {
    /// The order of the curve.
    static let order = hex("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141")
    /// The generator, which is the key of scalar 1.
    private static let generator = hex(
        """
        0479be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798
        483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8
        """)

    private static func scalar(_ value: UInt8) -> [UInt8] {
        [UInt8](repeating: 0, count: 31) + [value]
    }

    @Test(arguments: StatusGoVectors.recorded.keys)
    func publicKeysAreTheRecordedOnes(_ key: StatusGoVectors.Key) throws {
        let ours = try key.pair().publicKey
        #expect(ours.uncompressed == key.publicKey.bytes)
        #expect(ours.compressed == key.compressed.bytes)
        #expect(Array(ours.x) == Array(key.publicKey.bytes[1...32]))
        #expect(ours.hex == hexString(key.publicKey.bytes))
        #expect(try PublicKey(parsing: key.compressed.bytes) == ours)
        #expect(try PublicKey(parsing: key.publicKey.bytes) == ours)
        #expect(try PublicKey(parsing: key.compressed.bytes).hashValue == ours.hashValue)
    }

    @Test func errorsSayWhatAKeyIs() throws {
        let error = #expect(throws: CryptoError.self) { try PublicKey(hex: "04ff") }
        #expect(error?.description.hasPrefix("not a valid key: public keys have 65 or 33 bytes") == true)
    }

    @Test func scalarsAreTakenFromOneToTheOrderLessOne() throws {
        var last = Self.order
        last[31] -= 1
        #expect(try PrivateKey(bytes: Self.scalar(1)).publicKey.uncompressed == Self.generator)
        // -G: the same X, and the other Y.
        #expect(try PrivateKey(bytes: last).publicKey.compressed == [3] + Self.generator[1...32])
    }

    @Test(arguments: [scalar(0), order, order.dropLast() + [0x42], [UInt8](repeating: 0xFF, count: 32)])
    func scalarsOutOfRangeAreRefused(_ scalar: [UInt8]) {
        #expect(throws: CryptoError.invalidKey) { try PrivateKey(bytes: scalar) }
    }

    @Test(arguments: [0, 1, 31, 33, 64])
    func scalarsOfAnotherLengthAreRefused(_ count: Int) {
        #expect(throws: CryptoError.invalidKey) { try PrivateKey(bytes: [UInt8](repeating: 1, count: count)) }
    }

    @Test func aKeyGivesBackItsScalar() throws {
        let bytes = Array(1...32) as [UInt8]
        #expect(try PrivateKey(bytes: bytes).withBytes { Array($0) } == bytes)
    }

    @Test func generatedKeysDiffer() {
        #expect(Set((0..<50).map { _ in PrivateKey.generate().publicKey }).count == 50)
    }

    @Test(arguments: [UInt8(0), 1, 2, 3, 5, 6, 7, 0xFF])
    func sixtyFiveBytesMustBeginWithFour(_ first: UInt8) {
        // Hybrid encodings, 06 and 07, contain the parity of Y as well: libsecp256k1 would accept the right one.
        #expect(throws: CryptoError.invalidKey) { try PublicKey(parsing: [first] + Self.generator.dropFirst()) }
    }

    @Test(arguments: [UInt8(0), 1, 4, 5, 6, 7])
    func thirtyThreeBytesMustBeginWithTwoOrThree(_ first: UInt8) {
        #expect(throws: CryptoError.invalidKey) { try PublicKey(parsing: [first] + Self.generator[1...32]) }
    }

    @Test func pointsOffTheCurveAreRefused() {
        var wrongY = Self.generator
        wrongY[64] ^= 1
        // No point of the curve has X = 5.
        let noSuchX = [2] + Self.scalar(5)
        // X is not below the prime of the field.
        let tooLarge = [2] + [UInt8](repeating: 0xFF, count: 32)
        for bytes in [wrongY, noSuchX, tooLarge, [4] + [UInt8](repeating: 0, count: 64), [0], []] {
            #expect(throws: CryptoError.invalidKey) { try PublicKey(parsing: bytes) }
        }
    }

    @Test(arguments: [1, 32, 34, 64, 66])
    func publicKeysOfAnotherLengthAreRefused(_ count: Int) {
        #expect(throws: CryptoError.invalidKey) { try PublicKey(parsing: (Self.generator + Self.generator).prefix(count)) }
    }

    @Test(arguments: StatusGoVectors.recorded.primitives.ecdh)
    func sharedSecretsAreTheRecordedOnesFromBothSides(_ recorded: StatusGoVectors.SharedKey) throws {
        let vectors = StatusGoVectors.recorded
        let ours = try recorded.privateKey.map { try PrivateKey(bytes: $0.bytes) } ?? vectors.pair(recorded.private)
        let theirs = try vectors.pair(recorded.public)
        #expect(ours.sharedSecret(with: theirs.publicKey).withBytes { Array($0) } == recorded.sharedKey.bytes)
        #expect(theirs.sharedSecret(with: ours.publicKey).withBytes { Array($0) } == recorded.sharedKey.bytes)
        #expect(ours.sharedKey(with: theirs.publicKey).secret.withBytes { Array($0) } == recorded.sharedKey.bytes)
    }

    @Test func aRecordedSharedSecretBeginsWithZero() {
        #expect(StatusGoVectors.recorded.primitives.ecdh.contains { $0.sharedKey.bytes.first == 0 })
    }
}
