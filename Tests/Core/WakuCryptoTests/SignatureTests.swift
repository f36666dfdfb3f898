import TestSupport
import Testing

@testable import WakuCrypto

@Suite struct SignatureTests {
    private static let digest = SHA256.hash(Array("a message".utf8))
    private let key: PrivateKey

    init() throws {
        key = try PrivateKey(bytes: Array(1...32))
    }

    struct Known: Sendable, CustomTestStringConvertible {
        let scalar: String
        let message: String
        let signature: String
        var testDescription: String { message }
    }

    // Known answers for RFC 6979 with SHA-256 on this curve; V was computed with another implementation.
    @Test(arguments: [
        Known(
            scalar: "0000000000000000000000000000000000000000000000000000000000000001", message: "Satoshi Nakamoto",
            signature: """
                934b1ea10a4b3c1757e2b0c017d0b6143ce3c9a7e6a4a49860d7a6ab210ee3d8
                2442ce9d2b916064108014783e923ec36b49743e2ffa1c4496f01a512aafd9e5 01
                """),
        Known(
            scalar: "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140", message: "Satoshi Nakamoto",
            signature: """
                fd567d121db66e382991534ada77a6bd3106f0a1098c231e47993447cd6af2d0
                6b39cd0eb1bc8603e159ef5c20a5c8ad685a45b06ce9bebed3f153d10d93bed5 00
                """),
        Known(
            scalar: "0000000000000000000000000000000000000000000000000000000000000001",
            message: "All those moments will be lost in time, like tears in rain. Time to die...",
            signature: """
                8600dbd41e348fe5c9465ab92d23e3db8b98b873beecd930736488696438cb6b
                547fe64427496db33bf66019dacbf0039c04199abb0122918601db38a72cfc21 00
                """),
    ])
    func signaturesAreDeterministic(_ known: Known) throws {
        let key = try PrivateKey(bytes: hex(known.scalar))
        let digest = SHA256.hash(Array(known.message.utf8))
        #expect(Signature(of: digest, by: key).bytes == hex(known.signature))
        #expect(try Signature(parsing: hex(known.signature)).signer(of: digest) == key.publicKey)
    }

    @Test func recordedSignaturesAreMadeAndRecoveredAlike() throws {
        let vectors = StatusGoVectors.recorded
        var count = 0
        for message in vectors.messages {
            guard let plain = message.payloadPlain else { continue }
            let signer = try vectors.pair(publicKey: plain.signerPublicKey)
            let digest = Keccak256.hash(plain.bytes.bytes.dropLast(65))
            #expect(Signature(of: digest, by: signer).bytes == plain.signature.bytes)
            #expect(try Signature(parsing: plain.signature.bytes).signer(of: digest) == signer.publicKey)
            count += 1
        }
        #expect(count > 150)
    }

    @Test func anotherDigestGivesAnotherSigner() throws {
        let signature = Signature(of: Self.digest, by: key)
        #expect(try signature.signer(of: Self.digest) == key.publicKey)
        #expect(try signature.signer(of: SHA256.hash([])) != key.publicKey)
    }

    @Test(arguments: [UInt8(4), 27, 28, 31, 255])
    func vAboveThreeIsRefused(_ v: UInt8) {
        let bytes = Signature(of: Self.digest, by: key).bytes
        #expect(throws: CryptoError.invalidSignature) { try Signature(parsing: bytes.dropLast() + [v]) }
    }

    @Test(arguments: [0, 64, 66, 130])
    func otherLengthsAreRefused(_ count: Int) {
        let bytes = Signature(of: Self.digest, by: key).bytes
        #expect(throws: CryptoError.invalidSignature) { try Signature(parsing: (bytes.dropLast() + [0] + bytes).prefix(count)) }
    }

    @Test func theOtherParityNamesAnotherKey() throws {
        var bytes = Signature(of: Self.digest, by: key).bytes
        bytes[64] ^= 1
        #expect(try Signature(parsing: bytes).signer(of: Self.digest) != key.publicKey)
    }

    @Test(arguments: [UInt8(2), 3])
    func anRThatWouldExceedTheFieldIsRefused(_ v: UInt8) throws {
        // V of 2 and 3 mean R + n, which is below the field's prime only for very small R.
        let signature = try Signature(parsing: Signature(of: Self.digest, by: key).bytes.dropLast() + [v])
        #expect(throws: CryptoError.invalidSignature) { try signature.signer(of: Self.digest) }
    }

    @Test(arguments: [
        [UInt8](repeating: 0, count: 32), KeyTests.order, [UInt8](repeating: 0xFF, count: 32),
    ])
    func zeroAndTheOrderAndAboveAreNeitherRNorS(_ scalar: [UInt8]) throws {
        let bytes = Signature(of: Self.digest, by: key).bytes
        let wrongR = try Signature(parsing: scalar + bytes[32...])
        let wrongS = try Signature(parsing: bytes[..<32] + scalar + bytes[64...])
        #expect(throws: CryptoError.invalidSignature) { try wrongR.signer(of: Self.digest) }
        #expect(throws: CryptoError.invalidSignature) { try wrongS.signer(of: Self.digest) }
    }

    @Test func aHighSIsRecoveredAsGoEthereumDoesIt() throws {
        var bytes = Signature(of: Self.digest, by: key).bytes
        // n − S with the other V is the other signature of the same message.
        var borrow = 0
        for index in (0..<32).reversed() {
            let difference = Int(KeyTests.order[index]) - Int(bytes[32 + index]) - borrow
            borrow = difference < 0 ? 1 : 0
            bytes[32 + index] = UInt8((difference + 256) % 256)
        }
        bytes[64] ^= 1
        #expect(bytes[32] > 0x7F)
        #expect(try Signature(parsing: bytes).signer(of: Self.digest) == key.publicKey)
    }
}
