import Testing

@testable import HTTPService

@Suite struct HTTPLimitsTests {
    /// At least a quarter of all descriptors remains for relay, gorush, store and other nodes.
    @Test(arguments: [128, 256, 1024, 4096, 65_536, 1_048_576])
    func listenersLeaveRoom(descriptors: Int) {
        let limits = HTTPLimits.Listener.allCases.map { HTTPLimits($0, descriptors: descriptors) }
        #expect(limits.reduce(0) { $0 + $1.connections + $1.reserve } <= descriptors * 3 / 4)
        #expect(limits.allSatisfy { $0.connections >= 4 && $0.connections <= 1024 })
    }

    @Test func theLimitsAllowAtLeastAScraper() {
        #expect(HTTPLimits(.status, descriptors: 8).connections == 4)
        #expect(HTTPLimits(.status, descriptors: 256).connections == 64)
        #expect(HTTPLimits(.loopbackRelay, descriptors: .max).connections == 1024)
        #expect(HTTPLimits(.admin, descriptors: 1024).connections == 32)
    }
}
