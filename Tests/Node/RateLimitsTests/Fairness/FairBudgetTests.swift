import Core
import Testing
import TestSupport

@testable import RateLimits

@Suite struct FairBudgetTests {
    private let start = Timestamp(rawValue: 1_700_000_000_000_000_000)

    private func payer(_ number: Int) -> Payer { FairQueueTests.payer(number) }

    @Test func onePayerGetsTheWholeRate() {
        var budget = FairBudget(RateLimit(100, per: .second, burst: 50))
        var admitted = 0
        for tick in 0..<10_000 where budget.admits(payer(1), .stranger, at: start + .milliseconds(tick)) { admitted += 1 }
        #expect((1_045...1_050).contains(admitted))
    }

    @Test func singleTokenIsAvailableToEveryStanding() {
        for standing in Standing.allCases {
            var budget = FairBudget(RateLimit(1, per: .second))
            let result1 = budget.admits(payer(1), standing, at: start)
            #expect(result1)
            let result2 = budget.admits(payer(2), standing, at: start)
            #expect(!result2)
            let result3 = budget.admits(payer(2), standing, at: start + .seconds(1))
            #expect(result3)
        }
    }

    @Test func costAboveTheBucketTakesAFullBucket() {
        var budget = FairBudget(RateLimit(10, per: .second))
        let result4 = budget.admits(payer(1), .stranger, cost: 1_000, at: start)
        #expect(result4)
        let result5 = budget.admits(payer(1), .stranger, at: start)
        #expect(!result5)
    }

    @Test func floodOfStrangersCostsTheKnownNothing() {
        var budget = FairBudget(RateLimit(100, per: .second, burst: 100))
        var refused = 0
        for tick in 0..<20_000 {
            let now = start + .milliseconds(tick)
            _ = budget.admits(payer(tick + 10), .stranger, at: now)
            // 40 a second, of the guaranteed 50; the reserve begins to fill when the first known payer is seen.
            if tick.isMultiple(of: 25), !budget.admits(payer(tick % 4), .known, at: now), tick > 1_000 { refused += 1 }
        }
        #expect(refused == 0)
    }

    @Test func floodOfTheKnownLeavesStrangersTheirShare() {
        var budget = FairBudget(RateLimit(100, per: .second, burst: 100))
        var admitted = 0
        for tick in 0..<20_000 {
            let now = start + .milliseconds(tick)
            _ = budget.admits(payer(tick % 7), .known, at: now)
            if tick.isMultiple(of: 50), budget.admits(payer(100), .stranger, at: now) { admitted += 1 }
        }
        #expect(admitted >= 390)
    }

    @Test func payerOfManyDoesNotStarveOthers() {
        var budget = FairBudget(RateLimit(1_000, per: .second, burst: 1_000))
        var admitted = 0
        for tick in 0..<20_000 {
            let now = start + .milliseconds(tick)
            for _ in 0..<10 { _ = budget.admits(payer(1), .stranger, at: now) }
            if tick.isMultiple(of: 10), budget.admits(payer(2 + tick % 5), .stranger, at: now) { admitted += 1 }
        }
        #expect(admitted >= 1_960)
    }

    @Test func totalNeverExceedsTheRate() {
        var random = SeededGenerator(seed: 5)
        for _ in 0..<20 {
            let rate = RateLimit(Int.random(in: 1...500, using: &random), per: .second, burst: Int.random(in: 1...500, using: &random))
            var budget = FairBudget(rate)
            var (now, taken) = (start, 0)
            for _ in 0..<5_000 {
                now = now + .milliseconds(Int.random(in: 0...5, using: &random))
                let cost = Int.random(in: 1...3, using: &random)
                if budget.admits(payer(.random(in: 0..<50, using: &random)), random.pick(Standing.allCases), cost: cost, at: now) {
                    taken += min(cost, rate.burst)
                }
            }
            let seconds = Double(now.since(start).nanoseconds) / 1e9
            #expect(Double(taken) <= Double(rate.burst) + Double(rate.count) * seconds + 1)
        }
    }

    @Test func usageOfOtherNodesCounts() {
        var budget = FairBudget(RateLimit(10, per: .second))
        budget.note(payer(1), .stranger, cost: 10, at: start)
        #expect(budget.available(to: .known) == 0)
        let result6 = budget.admits(payer(2), .stranger, at: start)
        #expect(!result6)
    }
}
