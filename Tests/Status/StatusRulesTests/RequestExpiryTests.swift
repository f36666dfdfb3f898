import StatusRules
import Testing
import Core

@Suite struct RequestExpiryTests {
    private static let now = Timestamp(rawValue: 1_700_000_000_000_000_000)
    private let rules = RequestRules(maximumAge: .seconds(300))

    @Test func aRequestMayBeAsOldAsTheMaximum() {
        #expect(rules.expiry(of: Self.now, at: Self.now) == Self.now + .seconds(300))
        #expect(rules.expiry(of: Self.now - .seconds(1), at: Self.now) == Self.now + .seconds(299))
        #expect(rules.expiry(of: Self.now - .seconds(300), at: Self.now) == Self.now)
        #expect(rules.expiry(of: Self.now - .seconds(300) - .nanoseconds(1), at: Self.now) == nil)
    }

    @Test func withoutATimestampItIsFresh() {
        #expect(rules.expiry(of: Timestamp(rawValue: 0), at: Self.now) == Self.now + .seconds(300))
    }

    @Test(arguments: [1, 1_000_000_000, 3_600_000_000_000, Int64.max - 1_700_000_000_000_000_000])
    func aClockThatIsAheadKeepsNothingAliveForLonger(_ nanoseconds: Int64) {
        #expect(rules.expiry(of: Self.now + .nanoseconds(nanoseconds), at: Self.now) == Self.now + .seconds(300))
    }

    @Test(arguments: [Int64.min, -1, 1])
    func timesLongAgoAreTooOld(_ time: Int64) {
        #expect(rules.expiry(of: Timestamp(rawValue: time), at: Self.now) == nil)
    }

    @Test func theEndsOfTheRangeDoNotTrap() {
        let patient = RequestRules(maximumAge: .seconds(Int64.max))
        for time in [Int64.min, 0, .max].map(Timestamp.init) {
            for now in [Int64.min, 0, .max].map(Timestamp.init) {
                for rules in [rules, patient] {
                    if let expiry = rules.expiry(of: time, at: now) { #expect(expiry >= now) }
                }
            }
        }
        #expect(patient.expiry(of: Self.now, at: Self.now) == Timestamp(rawValue: .max))
    }
}
