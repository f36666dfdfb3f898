import TestSupport
import Testing

@testable import WakuCrypto

@Suite struct CurveTests {
    /// RFC 7748, section 5.2.
    @Test(arguments: [
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
        ),
        (
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"
        ),
    ])
    func x25519(scalar: String, coordinate: String, product: String) throws {
        let key = try #require(X25519PrivateKey(bytes: hex(scalar)))
        #expect(try key.sharedSecret(with: hex(coordinate)).withBytes { Array($0) } == hex(product))
    }

    @Test func pointsOfSmallOrderAreRefused() {
        let key = X25519PrivateKey.generate()
        for point in [[UInt8](repeating: 0, count: 32), [1] + [UInt8](repeating: 0, count: 31), [UInt8](repeating: 9, count: 31), []] {
            #expect(throws: CryptoError.invalidKey) { try key.sharedSecret(with: point) }
        }
        #expect(X25519PrivateKey(bytes: [1, 2, 3]) == nil)
    }

    @Test func bothSidesShareOneSecret() throws {
        let (one, other) = (X25519PrivateKey.generate(), X25519PrivateKey.generate())
        let shared = try one.sharedSecret(with: other.publicKey).withBytes { Array($0) }
        #expect(try other.sharedSecret(with: one.publicKey).withBytes { Array($0) } == shared)
    }

    /// RFC 8032, section 7.1, tests 1 and 2.
    @Test(arguments: [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
            """
            e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b
            """
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
            """
            92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00
            """
        ),
    ])
    func ed25519(seed: String, point: String, message: String, signature: String) throws {
        let key = try #require(Ed25519PrivateKey(seed: hex(seed)))
        #expect(key.publicKey.bytes == hex(point))
        #expect(key.signature(of: hex(message)) == hex(signature))
        #expect(key.publicKey.isValid(hex(signature), of: hex(message)))
        #expect(!key.publicKey.isValid(hex(signature), of: hex(message) + [0]))
    }

    @Test func ecdsaInDER() {
        let key = PrivateKey.generate()
        let digest = SHA256.hash([1])
        #expect(!ECDSA.isValid(hex("3006020101020101"), of: digest, by: key.publicKey))
        #expect(!ECDSA.isValid(hex("30060201"), of: digest, by: key.publicKey))
        #expect(ECDSA.isValid(ECDSA.signature(of: digest, by: key), of: digest, by: key.publicKey))
    }

    /// The expected bytes are covered by the Noise vectors in LibP2PTests.
    @Test func chaCha20Poly1305InPieces() throws {
        let key = SecretBytes.random(count: 32)
        let sealing = ChaCha20Poly1305(key: key, direction: .seal)
        let opening = ChaCha20Poly1305(key: key, direction: .open)
        let plain = randomBytes(1_000)
        let whole = sealing.seal(plain, counter: 7, associatedData: [1, 2])
        var pieces = [UInt8](repeating: 0, count: 1_016)
        sealing.start(7)
        ([1, 2] as [UInt8]).withUnsafeBytes { sealing.authenticate($0) }
        plain.withUnsafeBytes { plain in
            pieces.withUnsafeMutableBytes { output in
                guard let start = output.baseAddress else { return }
                for range in [0..<1, 1..<64, 64..<65, 65..<700, 700..<1_000] {
                    sealing.update(UnsafeRawBufferPointer(rebasing: plain[range]), into: start + range.lowerBound)
                }
                sealing.finishSealing(tag: start + 1_000)
            }
        }
        #expect(pieces == whole)
        #expect(try opening.open(whole, counter: 7, associatedData: [1, 2]) == plain)
        #expect(throws: CryptoError.authenticationFailed) { try opening.open(whole, counter: 8, associatedData: [1, 2]) }
        #expect(throws: CryptoError.authenticationFailed) { try opening.open(whole, counter: 7, associatedData: [1]) }
        #expect(throws: CryptoError.truncated) { try opening.open([1, 2, 3], counter: 7, associatedData: []) }
        #expect(try opening.open(sealing.seal([], counter: 9, associatedData: []), counter: 9, associatedData: []) == [])
    }

    /// RFC 5869 with the chaining key as the salt and an empty info.
    @Test func noiseKeysAreHKDF() {
        let (salt, input) = (randomBytes(32), randomBytes(32))
        let whole = input.withUnsafeBufferPointer { KeyDerivation.hkdf($0, salt: salt, purpose: [], byteCount: 64) }
        let (first, second) = KeyDerivation.noiseKeys(chainingKey: SecretBytes(salt), input: SecretBytes(input))
        let bytes = [first, second, whole].map { $0.withBytes { Array($0) } }
        #expect(bytes[0] + bytes[1] == bytes[2])
    }
}
