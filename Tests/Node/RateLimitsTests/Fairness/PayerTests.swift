import Testing
import TestSupport
import WakuCrypto

@testable import RateLimits

@Suite struct PayerTests {
    private let hasher = PayerHasher(key: .random())

    @Test func addressesOfOneNetworkAreOnePayer() {
        #expect(hasher.source("192.0.2.1") == hasher.source("192.0.2.250"))
        #expect(hasher.source("192.0.2.1") == hasher.source("::ffff:192.0.2.9"))
        #expect(hasher.source("192.0.2.1") != hasher.source("192.0.3.1"))
        #expect(hasher.source("2001:db8::1") == hasher.source("2001:db8:0:0:ffff::2"))
        #expect(hasher.source("2001:db8::1") != hasher.source("2001:db8:0:1::1"))
        #expect(hasher.source("fe80::1%eth0") == hasher.source("fe80::2"))
        #expect(hasher.source("not an address") != hasher.source("another"))
    }

    @Test func kindsAndKeysAreDistinct() {
        #expect(hasher.payer(.key, [1]) != hasher.payer(.device, [1]))
        #expect(hasher.payer(.key, [1]) == hasher.payer(.key, [1]))
        #expect(hasher.payer(.key, [1]) != PayerHasher(key: .random()).payer(.key, [1]))
        #expect(hasher.payer(.key, [1]).bytes.count == 17)
        #expect(hasher.source("192.0.2.1") != hasher.peer("192.0.2.1"))
    }
}
