import TestSupport
import Testing

@testable import WakuCrypto

@Suite struct AES256BlockTests {
    /// FIPS 197, appendix C.3.
    @Test func theStandardsExample() throws {
        let key = try #require(SymmetricKey(bytes: Array(0..<32)))
        let plain = hex("00112233445566778899aabbccddeeff")
        let sealed = hex("8ea2b7ca516745bfeafc49904b496089")
        #expect(AES256Block.encrypt(plain, key: key) == sealed)
        #expect(AES256Block.decrypt(sealed, key: key) == plain)
    }

    @Test func eachBlockIsReadBack() {
        let key = SymmetricKey.random()
        for _ in 0..<100 {
            let block = randomBytes(AES256Block.byteCount)
            #expect(AES256Block.decrypt(AES256Block.encrypt(block, key: key), key: key) == block)
        }
    }
}
