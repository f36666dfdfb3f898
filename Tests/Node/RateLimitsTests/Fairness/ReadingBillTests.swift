import Core
import Testing

@testable import RateLimits

@Suite struct ReadingBillTests {
    @Test func theFirstBytesOfAMessageAreFree() {
        var bill = ReadingBill(.answer)
        let charged = [16 << 10, 1, 5].map { bill.charged($0) }
        #expect(charged == [0, 1, 5])
        var other = ReadingBill(.decision, free: 100)
        let parts = [60, 60, 60].map { other.charged($0) }
        #expect(parts == [0, 20, 60])
    }

    @Test func readingIsNotLimitedWithoutNotificationsOrAnswers() throws {
        var limits = Limits.standard
        try limits.set("notifications=off")
        try limits.set("answer-kib=off")
        var table = RateLimitTable(limits)
        let charge = Charge(FairQueueTests.payer(1, .registrant), .stranger)
        for purpose in [ReadingBill.Purpose.answer, .decision] {
            let refused = (0..<100).filter { _ in
                table.reading(byteCount: 4 << 20, for: purpose, by: charge, at: Timestamp(rawValue: 1)) != nil
            }
            #expect(refused.isEmpty)
        }
    }
}
