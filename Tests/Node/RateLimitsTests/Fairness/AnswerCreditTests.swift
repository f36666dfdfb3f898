import Core
import Testing

@testable import RateLimits

@Suite struct AnswerCreditTests {
    private let start = Timestamp(rawValue: 1_700_000_000_000_000_000)

    private func pays(_ credit: inout AnswerCredit, _ byteCount: Int, of standing: Standing, query: Int = 0, after time: Duration) -> Bool {
        credit.pays(byteCount: byteCount, about: [1], queryByteCount: query, standing, at: start + time)
    }

    @Test func aQueryEarnsFiftyTimesItsSize() {
        var credit = AnswerCredit()
        let paid = [
            pays(&credit, 5_001, of: .stranger, query: 100, after: .zero), pays(&credit, 5_000, of: .stranger, after: .zero),
            pays(&credit, 1, of: .stranger, after: .zero),
        ]
        #expect(paid == [false, true, false])
    }

    @Test(arguments: Standing.allCases) func onlyKnownRegistrantsEarnWithTime(standing: Standing) {
        var credit = AnswerCredit()
        let first = pays(&credit, 1, of: standing, after: .zero)
        let earned = pays(&credit, 64 << 10, of: standing, after: .seconds(1))
        let more = pays(&credit, 1, of: standing, after: .seconds(1))
        #expect(!first && earned == (standing == .known) && !more)
    }

    @Test func creditIsEarnedHoweverOftenQueriesCome() {
        var credit = AnswerCredit()
        for tick in 0..<10_000 { _ = pays(&credit, 0, of: .known, after: .microseconds(100 * tick)) }
        // A fraction of a byte is lost each time.
        let earned = [pays(&credit, 64 << 10, of: .known, after: .seconds(1)), pays(&credit, 54 << 10, of: .known, after: .seconds(1))]
        #expect(earned == [false, true])
    }

    @Test func creditIsEarnedAfterTheClockWasAhead() {
        var credit = AnswerCredit()
        _ = pays(&credit, 1, of: .known, after: .seconds(86_400))
        _ = pays(&credit, 5 << 20, of: .known, after: .zero)
        #expect(pays(&credit, 64 << 10, of: .known, after: .seconds(1)))
    }

    @Test func atMostFiveMebibytesAreSaved() {
        var credit = AnswerCredit()
        _ = pays(&credit, 0, of: .known, after: .zero)
        let paid = [5 << 20 + 1, 5 << 20, 1].map { pays(&credit, $0, of: .known, after: .seconds(600)) }
        #expect(paid == [false, true, false])
    }
}
