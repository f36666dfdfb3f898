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
        #expect((950...1_050).contains(admitted))
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

    /// A divided bucket never has all of its tokens open to a standing.
    @Test(arguments: Standing.allCases) func costAboveWhatIsOpenToAStandingIsAdmittedWhenIdle(standing: Standing) {
        var budget = FairBudget(RateLimit(1_000, per: .second))
        let first = budget.admits(payer(1), standing, cost: 1_000, at: start)
        let second = budget.admits(payer(2), standing, cost: 1_000, at: start)
        #expect(first && !second)
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

    // MARK: Phases

    /// Payers that ask at chosen times, and the tokens that they get per second after a third of the time.
    private func rates(_ rate: RateLimit, seconds: Int, _ asks: [(payer: Int, phase: Duration, every: Duration)]) -> [Int: Double] {
        var budget = FairBudget(rate, seed: 3)
        var times: [(at: Duration, payer: Int)] = []
        for (number, phase, every) in asks {
            var at = phase
            while at < .seconds(seconds) {
                times.append((at, number))
                at = at + every
            }
        }
        var admitted: [Int: Double] = [:]
        for (at, number) in times.sorted(by: { ($0.at, $0.payer) < ($1.at, $1.payer) }) {
            guard budget.admits(payer(number), .stranger, at: start + at), at > .seconds(seconds / 3) else { continue }
            admitted[number, default: 0] += 1
        }
        return admitted.mapValues { $0 / (Double(seconds) * 2 / 3) }
    }

    /// One payer, or several that each ask no more than the others, are there whenever a token appears, and much oftener.
    @Test(arguments: [1, 500, 999])
    func tokensAreNotTheirsWhoAskAsTheyAppear(phase: Int) {
        let unit = Duration.milliseconds(phase)
        // One token in a second, two payers.
        for every in [1_000, 100, 10] {
            let rates = rates(RateLimit(1, per: .second), seconds: 300, [(1, .zero, .milliseconds(every)), (2, unit, .seconds(1))])
            #expect(rates[2] ?? 0 >= 0.15, "\(rates)")
        }
        for (count, burst) in [(10, 10), (100, 100), (1_000, 1_000), (100, 1_000)] {
            let interval = Duration.nanoseconds(1_000_000_000 / Int64(count))
            let phase = Duration.nanoseconds(interval.nanoseconds * Int64(phase) / 1_000)
            for attackers in [1, 2, 4] {
                // At each token all of them, one after the other; the honest payer asks for a tenth of the rate.
                let asks = (1...attackers).map { (payer: $0, phase: Duration.nanoseconds(Int64($0)), every: interval) }
                let rates = rates(
                    RateLimit(count, per: .second, burst: burst), seconds: max(count < 1_000 ? 30 : 9, 6 * burst / count),
                    asks + [(100, phase, .nanoseconds(interval.nanoseconds * 10))])
                #expect(rates[100] ?? 0 >= 0.08 * Double(count), "\(count)/s burst \(burst), \(attackers) attackers: \(rates)")
            }
        }
    }

    /// Each message from a payer of its own, as tokens appear: an honest payer of one message has the chance of any other.
    @Test(arguments: [0, 5]) func payersOfOneMessageHaveTheSameChanceAtAnyPhase(phase: Int) {
        var budget = FairBudget(RateLimit(1_000, per: .second, burst: 1_000), seed: 4)
        var (asked, admitted) = (0, 0)
        for tick in 0..<100_000 {
            let now = start + .nanoseconds(Int64(tick) * 100_000)
            // Ten times the rate.
            _ = budget.admits(payer(1_000_000 + tick), .stranger, at: now)
            guard tick % 100 == phase, tick > 20_000 else { continue }
            asked += 1
            if budget.admits(payer(-tick), .stranger, at: now + .nanoseconds(1)) { admitted += 1 }
        }
        // A tenth, of 800.
        #expect(admitted >= 50, "\(admitted) of \(asked)")
    }

    @Test func payersShareByWhatTheyAskFor() {
        // 10, 100, 1,000 and 10,000 in a second, of 600: the first two get all, the others half of the remainder each.
        let every: [Int64] = [100_000_000, 10_000_000, 1_000_000, 100_000]
        let rates = rates(
            RateLimit(600, per: .second, burst: 600), seconds: 20,
            every.enumerated().map { (payer: $0, phase: .nanoseconds(Int64($0)), every: .nanoseconds($1)) })
        #expect(rates[0] ?? 0 >= 9.5 && rates[1] ?? 0 >= 95, "\(rates)")
        for number in 2...3 { #expect((200...290).contains(rates[number] ?? 0), "\(rates)") }
    }
}
