import Core
import TestSupport
import Testing
import WakuCrypto

@testable import SessionProtocol

@Suite struct SodiumTests {
    private let sodium: Sodium
    private let vectors = SessionVectors.derived

    init() throws {
        sodium = try Sodium.load()
    }

    @Test func missingLibrarySaysWhatToInstall() {
        #expect { _ = try Sodium(opening: "libsodium.so.9999") } throws: { error in
            let text = "\(error)"
            return text.contains("install libsodium23") && !text.contains("\n")
        }
    }

    @Test func libraryWithoutTheFunctionsIsRefused() {
        #expect { _ = try Sodium(opening: "libc.so.6") } throws: { error in
            (error as? OptionalLibraryError)?.reason.contains("sodium_init") == true
        }
    }

    @Test func signaturesAreVerified() throws {
        let session = vectors.sessionId
        let key = try Ed25519PublicKey(parsing: session.sessionEd25519.bytes)
        let text = Array(session.monitorMessage.utf8)
        #expect(sodium.isValid(session.signature.bytes, of: text, by: key))
        #expect(!sodium.isValid(session.signature.bytes, of: text + [0], by: key))
        #expect(!sodium.isValid(Array(session.signature.bytes.dropLast()), of: text, by: key))
        #expect(!sodium.isValid([], of: text, by: key))
        // The identity as the key would make signatures valid for every text.
        let identity = try Ed25519PublicKey(parsing: [1] + [UInt8](repeating: 0, count: 31))
        #expect(!sodium.isValid([1] + [UInt8](repeating: 0, count: 63), of: text, by: identity))
    }

    @Test func ed25519KeysHaveX25519Forms() throws {
        let key = try Ed25519PublicKey(parsing: vectors.sessionId.sessionEd25519.bytes)
        #expect(sodium.x25519Key(of: key) == Array(vectors.sessionId.pubkey.bytes.dropFirst()))
        #expect(sodium.x25519Key(of: try Ed25519PublicKey(parsing: [UInt8](repeating: 0xFF, count: 32))) == nil)
        #expect(sodium.x25519Key(of: try Ed25519PublicKey(parsing: [1] + [UInt8](repeating: 0, count: 31))) == nil)
    }

    @Test func formsAreThoseOfLibsodium() throws {
        for _ in 0..<50 {
            let key = Ed25519PrivateKey.generate().publicKey
            let form = try #require(sodium.x25519Key(of: key))
            #expect(key.hasX25519Form(form))
            for bit in [0, 100, 254, 255] {
                var other = form
                other[bit / 8] ^= 1 << (bit % 8)
                #expect(!key.hasX25519Form(other))
            }
            #expect(!key.hasX25519Form(key.bytes))
            #expect(!key.hasX25519Form(form + [0]))
            #expect(!Ed25519PrivateKey.generate().publicKey.hasX25519Form(form))
            // The point with the opposite sign of x.
            let negated = try Ed25519PublicKey(parsing: key.bytes.dropLast() + [key.bytes[31] ^ 0x80])
            #expect(sodium.x25519Key(of: negated) == form && negated.hasX25519Form(form))
        }
    }

    @Test func formsHaveOneEncoding() throws {
        // The base points of both curves, and 9 plus the prime.
        let base = try Ed25519PublicKey(parsing: [0x58] + [UInt8](repeating: 0x66, count: 31))
        #expect(base.hasX25519Form([9] + [UInt8](repeating: 0, count: 31)))
        #expect(!base.hasX25519Form([0xF6] + [UInt8](repeating: 0xFF, count: 30) + [0x7F]))
        // The sum of the base point and the point of order 2 has an X25519 form, but libsodium refuses it.
        let mixed = try Ed25519PublicKey(parsing: [0x95] + [UInt8](repeating: 0x99, count: 30) + [0x19])
        let form = try #require(bytes(hex: "12c7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711cc7711c47"))
        #expect(mixed.hasX25519Form(form) && sodium.x25519Key(of: mixed) == nil)
        // The neutral element in both of its encodings: its X25519 form would be 2 / 0.
        for bytes in [[1] + [UInt8](repeating: 0, count: 31), [0xEE] + [UInt8](repeating: 0xFF, count: 30) + [0x7F]] {
            let neutral = try Ed25519PublicKey(parsing: bytes)
            for form in [[UInt8](repeating: 0, count: 32), [1] + [UInt8](repeating: 0, count: 31), [UInt8](repeating: 0xFF, count: 32)] {
                #expect(!neutral.hasX25519Form(form))
            }
        }
    }

    @Test func sharedSecretsAreThoseOfOpenSSL() throws {
        let bytes = (0..<32).map { UInt8($0) }
        let (secret, reference) = (SecretBytes(bytes), try #require(X25519PrivateKey(bytes: bytes)))
        #expect(sodium.x25519PublicKey(of: secret) == reference.publicKey)
        let other = X25519PrivateKey.generate().publicKey
        let shared = try sodium.sharedSecret(secret, with: other)
        #expect(try shared.withBytes(Array.init) == reference.sharedSecret(with: other).withBytes(Array.init))
    }

    @Test(arguments: [[UInt8](repeating: 0, count: 32), [1] + [UInt8](repeating: 0, count: 31), [9], []])
    func keysOfSmallOrderAreRefused(point: [UInt8]) {
        #expect(throws: CryptoError.invalidKey) { try sodium.sharedSecret(SecretBytes.random(count: 32), with: point) }
    }

    @Test func xChaChaSealsAsPublished() throws {
        let published = SessionPublishedVectors.recorded.notification
        let key = try #require(SymmetricKey(bytes: published.encKey.bytes))
        let sealed = published.payload.bytes
        #expect(try sodium.xChaChaOpen(sealed[...], key: key) == Array(published.plain.utf8))
        #expect(sodium.xChaChaSeal(Array(published.plain.utf8), key: key, nonce: Array(sealed[..<24])) == sealed)
    }

    @Test func alteredXChaChaIsRefused() throws {
        let key = SymmetricKey.random()
        let sealed = sodium.xChaChaSeal([1, 2, 3], key: key)
        for index in sealed.indices {
            var altered = sealed
            altered[index] ^= 1
            #expect(throws: CryptoError.authenticationFailed) { try sodium.xChaChaOpen(altered[...], key: key) }
        }
        for count in 0..<40 {
            #expect(throws: CryptoError.truncated) { try sodium.xChaChaOpen(sealed[..<count], key: key) }
        }
        #expect(try sodium.xChaChaOpen(sodium.xChaChaSeal([], key: key)[...], key: key) == [])
        #expect(sodium.xChaChaSeal([1], key: key) != sodium.xChaChaSeal([1], key: key))
    }

    @Test func sealedSliceOfALongerMessageIsOpened() throws {
        let key = SymmetricKey.random()
        let framed = [9, 9] + sodium.xChaChaSeal([5, 6], key: key) + [9]
        #expect(try sodium.xChaChaOpen(framed[2..<framed.count - 1], key: key) == [5, 6])
    }

    @Test func blake2bIsKeyed() {
        // RFC 7693 has vectors only for BLAKE2b-512; this is b2sum -l 256 of empty input.
        #expect(hexString(sodium.blake2b256([])) == "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8")
        #expect(sodium.blake2b256([1], key: [2]) != sodium.blake2b256([1]))
        let secret = [UInt8](repeating: 7, count: 96)
        #expect(sodium.blake2b256Key(of: SecretBytes(secret)).secret.withBytes(Array.init) == sodium.blake2b256(secret))
    }

    @Test func scalarSumLosesItsCarry() {
        let most = [UInt8](repeating: 0xFF, count: 32)
        // 2^256 − 1 + 2 is 1 without the carry.
        #expect(sodium.scalarSum(most, [2] + [UInt8](repeating: 0, count: 31)) == [1] + [UInt8](repeating: 0, count: 31))
    }

    @Test func productIsThatOfTheVector() throws {
        let vector = vectors.subkeyTagOld
        let account = try Ed25519PublicKey(parsing: vector.pubkey.bytes.dropFirst())
        let hash = sodium.blake2b256(vector.subkeyTag.bytes + account.bytes, key: Array("OxenSSSubkey".utf8))
        #expect(sodium.product(sodium.scalarSum(vector.subkeyTag.bytes, hash), account)?.bytes == vector.derivedVerifyKey.bytes)
        #expect(sodium.product([UInt8](repeating: 0, count: 32), account) == nil)
    }
}
