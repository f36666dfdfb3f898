import Core
import Testing
import WakuCrypto

@testable import RateLimits

@Suite struct PayerTests {
    private let hasher = PayerHasher(key: .random())

    private func payer(_ address: String, _ kind: Payer.Kind = .source) throws -> Payer {
        hasher.payer(kind, try #require(IPAddress(address)).block)
    }

    @Test func addressesOfOneNetworkAreOnePayer() throws {
        #expect(try payer("192.0.2.1") == payer("192.0.2.250"))
        #expect(try payer("192.0.2.1") == payer("::ffff:192.0.2.9"))
        #expect(try payer("192.0.2.1") != payer("192.0.3.1"))
        #expect(try payer("2001:db8::1") == payer("2001:db8:0:0:ffff::2"))
        #expect(try payer("2001:db8::1") != payer("2001:db8:0:1::1"))
        #expect(try payer("192.0.2.1") != hasher.payer(.source, nil))
    }

    @Test func kindsAndKeysAreDistinct() throws {
        #expect(hasher.payer(.key, [1]) != hasher.payer(.deviceToken, [1]))
        #expect(hasher.payer(.key, [1]) == hasher.payer(.key, [1]))
        #expect(hasher.payer(.key, [1]) != PayerHasher(key: .random()).payer(.key, [1]))
        #expect(hasher.payer(.key, [1]).bytes.count == 17)
        #expect(try payer("192.0.2.1") != payer("192.0.2.1", .peer))
    }
}
