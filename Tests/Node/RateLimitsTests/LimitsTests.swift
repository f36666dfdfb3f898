import Testing

@testable import RateLimits

@Suite struct LimitsTests {
    @Test func everyLimitIsSetByItsOwnName() throws {
        let rates = Set(Limits.rates.map(\.limit.optionName))
        for name in Limits.none.settings.map(\.name) {
            let value = rates.contains(name) ? "7/s burst 9" : "7"
            var limits = Limits.none
            try limits.set("\(name)=\(value)")
            #expect(limits.settings.filter { $0.value != "off" }.map { "\($0.name)=\($0.value)" } == ["\(name)=\(value)"])
            try limits.set("\(name)=off")
            #expect(limits == .none)
        }
    }

    @Test func deniedKeysMayNotRegisterEvenIfAllowed() {
        let keys: [[UInt8]] = [[1], [2], [3]]
        var limits = Limits.none
        limits.denied = [[1]]
        #expect(keys.map { limits.allows($0) } == [false, true, true])
        limits.allowed = [[1], [2]]
        #expect(keys.map { limits.allows($0) } == [false, true, false])
    }

    @Test(arguments: [(4, 0), (5, 0), (6, 1)]) func aPartMayBeAsLargeAsTheWhole(part: Int, conflictCount: Int) {
        var limits = Limits.none
        (limits.installationsByKey, limits.registrationCount) = (part, 5)
        #expect(limits.conflicts.count == conflictCount)
    }

    /// A node's share of the burst is its part and twice the deviation: 100/4 + 2 × √25.
    @Test func shareOfABurstIncludesTwiceTheDeviation() {
        #expect(RateLimit(10, per: .second, burst: 100).share(among: 4) == RateLimit(216_000, per: .day, burst: 35))
        #expect(RateLimit(10, per: .second, burst: 2).share(among: 4).burst == 2)
    }

    @Test(arguments: [(9, 1, true), (10, 1, false), (8, 2, true), (9, 2, false), (11, 1, false)])
    func devicesFitUpToTheCount(registered: Int, new: Int, fits: Bool) throws {
        var limits = Limits.none
        try limits.set("registration-count=10")
        let limiter = RateLimits(limits)
        limiter.counted(registrations: registered)
        #expect(limiter.exhausted(devices: new) == (fits ? nil : .registrationCount))
    }
}
