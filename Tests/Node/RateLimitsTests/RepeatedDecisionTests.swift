import Core
import Testing

@testable import RateLimits

/// The store decides on a command again if rows have changed since they were read, or if other commands of its transaction failed.
@Suite struct RepeatedDecisionTests {
    private let now = Timestamp(rawValue: 1_700_000_000_000_000_000)

    private func limits(_ texts: String...) throws -> Limits {
        var limits = Limits.none
        for text in texts { try limits.set(text) }
        return limits
    }

    @Test func aNotificationIsChargedOnce() throws {
        let limiter = RateLimits(try limits("notifications-by-target=1/d"))
        let (first, second) = (ChargeID([1]), ChargeID([2]))
        func refuses(_ id: ChargeID?) -> Bool {
            limiter.refuses(once: id) { $0.notification(for: [7], at: now) }
        }
        #expect([first, first, second, second, first, nil].map(refuses) == [false, false, true, true, false, true])
        // One piece of work, and three refusals.
        #expect(limiter.refusals.totals.values.reduce(0, +) == 3)
    }

    @Test func theSameContentPaysAgainLater() throws {
        let limiter = RateLimits(try limits("new-registrations=1/d"))
        let (early, late) = (ChargeID([1], at: now), ChargeID([1], at: now + .seconds(1)))
        #expect([early, early, late].map { limiter.refusesNew($0, at: now) } == [false, false, true])
    }

    @Test func aNewDeviceIsCountedOnce() throws {
        let limiter = RateLimits(try limits("registration-count=2", "new-registrations=3/d"))
        let ids = (0..<4).map { ChargeID([$0], at: now) }
        #expect(!limiter.refusesNew(ids[0], at: now) && !limiter.refusesNew(ids[0], at: now))
        #expect(!limiter.isFull)
        #expect(!limiter.refusesNew(ids[1], at: now) && limiter.isFull)
        // Its own count leaves room for it, and none for another.
        #expect(!limiter.isFull(for: ids[1]) && !limiter.refusesNew(ids[1], at: now))
        #expect(limiter.isFull(for: ids[2]) && limiter.refusesNew(ids[2], at: now))
        // First it displaces another device, then one has ended meanwhile.
        #expect(!limiter.refusesNew(ids[2], displaced: 1, at: now) && limiter.isFull)
        limiter.removedRegistration()
        #expect(!limiter.isFull(for: ids[2]) && !limiter.refusesNew(ids[2], at: now) && limiter.isFull)
        // Refused for another reason: it leaves its room, and has paid.
        #expect(limiter.uncount(ids[2]) && limiter.uncount(ids[2]))
        #expect(limiter.exhausted() == nil && limiter.exhausted(devices: 2) == .registrationCount)
        #expect(!limiter.uncount(ids[3]) && limiter.refusesNew(ids[3], at: now))
        #expect(!limiter.refusesNew(ids[2], at: now) && limiter.isFull)
    }

    @Test func replacedLimitsKeepTheCount() throws {
        let limiter = RateLimits(try limits("registration-count=2"))
        let id = ChargeID([1], at: now)
        #expect(!limiter.refusesNew(id, at: now))
        limiter.replace(try limits("registration-count=3"))
        #expect(!limiter.refusesNew(id, at: now))
        #expect(limiter.exhausted(devices: 2) == nil && limiter.exhausted(devices: 3) == .registrationCount)
    }
}
