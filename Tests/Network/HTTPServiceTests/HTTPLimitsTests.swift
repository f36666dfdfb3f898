import Core
import Testing

@testable import HTTPService

@Suite struct HTTPLimitsTests {
    /// Half of the descriptors of listeners remains for libp2p, at every limit.
    @Test func listenersUseHalfOfTheDescriptorsOfListeners() {
        for descriptors in Array(0..<3000) + [4096, 65_536, 1_048_576, .max] {
            let limits = HTTPLimits.Listener.allCases.map { HTTPLimits($0, descriptors: descriptors) }
            let sum = limits.reduce(0) { $0 + $1.connections + $1.reserve }
            #expect(sum <= DescriptorLimit.forListeners(of: descriptors) / 2, "\(descriptors)")
            #expect(limits.allSatisfy { $0.connections >= 4 && $0.connections <= 1024 }, "\(descriptors)")
        }
    }

    @Test func theLimitsAllowAtLeastAScraper() {
        #expect(HTTPLimits(.status, descriptors: 8).connections == 4)
        #expect(HTTPLimits(.status, descriptors: 8192).connections == 682)
        #expect(HTTPLimits(.loopbackRelay, descriptors: .max).connections == 1024)
        #expect(HTTPLimits(.admin, descriptors: 8192).connections == 64)
    }
}
