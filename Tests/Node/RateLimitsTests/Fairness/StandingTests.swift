import Core
import Testing

@testable import RateLimits

@Suite struct StandingTests {
    private let start = Timestamp(rawValue: 1_700_000_000_000_000_000)

    private func payer(_ number: UInt64) -> Payer {
        Payer(.deviceToken, hash: (0..<16).map { UInt8(truncatingIfNeeded: number >> (8 * ($0 % 8))) })
    }

    @Test func standingIsEarnedByAnAcceptanceAndExpires() {
        var book = StandingBook()
        let result1 = book.standing(of: payer(1), at: start)
        #expect(result1 == .stranger)
        book.accepted(payer(1), at: start)
        let result3 = book.standing(of: payer(1), at: start)
        #expect(result3 == .known)
        let result4 = book.standing(of: payer(2), at: start)
        #expect(result4 == .stranger)
        let lifetime = Duration.seconds(60 * 24 * 3600)
        let result5 = book.standing(of: payer(1), at: start + lifetime)
        #expect(result5 == .known)
        let result6 = book.standing(of: payer(1), at: start + lifetime + .nanoseconds(1))
        #expect(result6 != .known)
    }

    @Test func ageMakesFamiliarButNotKnown() {
        var book = StandingBook()
        _ = book.standing(of: payer(1), at: start)
        let result7 = book.standing(of: payer(1), at: start + .seconds(3_600))
        #expect(result7 == .stranger)
        let result8 = book.standing(of: payer(1), at: start + StandingBook.familiarAge)
        #expect(result8 == .familiar)
        let result9 = book.standing(of: payer(1), at: start + .seconds(30 * 24 * 3600))
        #expect(result9 == .familiar)
    }

    @Test func floodOfNewPayersDisplacesNoKnownPayer() {
        var book = StandingBook(capacity: 100)
        book.accepted(payer(1), at: start)
        for number in 2..<10_000 {
            let result10 = book.standing(of: payer(UInt64(number)), at: start)
            #expect(result10 == .stranger)
        }
        let result11 = book.standing(of: payer(1), at: start)
        #expect(result11 == .known)
    }

    @Test func guaranteesFitIntoTheCapacity() {
        for capacity in [1, 2, 7, 100, 1 << 26] {
            let sum = Standing.allCases.reduce(0) { $0 + $1.guarantee(in: capacity) }
            #expect(sum <= capacity)
        }
    }

    @Test func totalsAreThoseThatThePricesAfford() {
        #expect(Limits.standard.newRegistrations == RateLimit(1_000, per: .second, burst: 10_000))
        #expect(Limits.standard.notifications == RateLimit(4_000, per: .second, burst: 40_000))
        for kind in WorkKind.allCases { #expect(kind.cpuMicroseconds > 0) }
    }
}
