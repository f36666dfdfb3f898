package import Core
import Foundation

/// A rate in total, such as bytes or CPU time, that is divided by standing and then among the payers of each standing. Time is an input.
///
/// A token bucket of which a part is reserved for each standing; in small buckets, for each standing that was seen lately. A reserve refills at its share of the rate; when it is full,
/// its part of the rate is open to all. While less than half of a standing's tokens is left, payers that have used more than the mean of that
/// standing's payers are refused: so the last tokens go to those that have used little. Payers of one message each cannot be told apart by usage; while
/// less than an eighth is left, each stranger is refused with a probability that rises as tokens run out. So all have the same chance, and a sender that times its
/// messages does not get every token.
package struct FairBudget: Sendable {
    /// A standing that was not seen for this time has no reserve.
    private static var idleLimit: Duration { .seconds(600) }
    /// See ``RateLimiter``.
    private static var greatestDelay: Duration { .seconds(10) }
    private static var payerCapacity: Int { 16_384 }
    /// Smaller buckets are exact: nothing is refused while there are tokens, and a standing has a reserve only after it was seen.
    private static var smallestDividedBurst: Int { 256 }

    /// Usage that decays by the factor e within the time in which the bucket refills.
    private struct Usage {
        var amount = 0.0
        var at: Timestamp
    }

    private struct Level {
        var reserve = 0.0
        var seen: Timestamp?
        /// The decayed sums of the payers' usage, and of its squares.
        var sum = 0.0
        var squares = 0.0
    }

    private let rate: RateLimit
    private let shares: StandingShares
    /// Tokens per second.
    private let refill: Double
    private var tokens: Double
    private var levels = [Level](repeating: Level(), count: Standing.allCases.count)
    private var usage = GenerationalCache<Payer, Usage>(capacity: payerCapacity)
    private var latest: Timestamp?
    private var random: SplitMix64

    package init(_ rate: RateLimit, shares: StandingShares = .standard, seed: UInt64 = .random(in: .min ... .max)) {
        random = SplitMix64(seed: seed)
        self.rate = rate
        self.shares = shares
        refill = 1e9 / Double(rate.interval)
        tokens = Double(rate.burst)
        guard isDivided else { return }
        for standing in Standing.allCases { levels[standing.rawValue].reserve = reserveLimit(standing) }
    }

    /// The time in which usage decays, in seconds.
    private var decayTime: Double { max(1e-9, Double(rate.burst) / refill) }

    /// Takes `cost` tokens. Returns false, without taking any, if the standing's tokens do not suffice, or if few are left and the payer has used more
    /// than others. A cost above the capacity takes a full bucket.
    package mutating func admits(_ payer: Payer, _ standing: Standing, cost: Int = 1, at time: Timestamp) -> Bool {
        let now = advance(to: time, standing)
        let index = standing.rawValue
        let cost = Double(min(max(cost, 1), rate.burst))
        let others = levels.indices.reduce(0) { $0 + ($1 == index ? 0 : levels[$1].reserve) }
        let available = max(levels[index].reserve, tokens - others)
        // A rounding error must not refuse the last token.
        guard available + 1e-6 >= cost else { return false }
        let used = used(by: payer, at: now)
        // The tokens of an idle bucket that are open to this standing.
        let most = Standing.allCases.reduce(Double(rate.burst)) {
            $0 - ($1 == standing || !hasReserve($1, at: now) ? 0 : reserveLimit($1))
        }
        if available < most / 2, isAboveMean(used, index) { return false }
        if isDivided, standing == .stranger, available < most / 8 {
            guard Double.random(in: 0..<1, using: &random) * most / 8 < available else { return false }
        }
        take(cost, payer, used, index, at: now)
        return true
    }

    /// Takes tokens that another node has admitted, as many as there are.
    package mutating func note(_ payer: Payer, _ standing: Standing, cost: Int, at time: Timestamp) {
        let now = advance(to: time, standing)
        take(Double(min(max(cost, 0), rate.burst)), payer, used(by: payer, at: now), standing.rawValue, at: now)
    }

    /// The tokens that a standing could take now.
    package func available(to standing: Standing) -> Int {
        let others = levels.indices.reduce(0) { $0 + ($1 == standing.rawValue ? 0 : levels[$1].reserve) }
        return Int(max(0, max(levels[standing.rawValue].reserve, tokens - others)) + 1e-6)
    }

    // MARK: -

    private var isDivided: Bool { rate.burst >= Self.smallestDividedBurst }

    private func hasReserve(_ standing: Standing, at now: Timestamp) -> Bool {
        isDivided || levels[standing.rawValue].seen.map { now.since($0) <= Self.idleLimit } ?? false
    }

    private func share(_ standing: Standing) -> Double {
        Double(shares.guarantee(of: standing, in: 1 << 20)) / Double(1 << 20)
    }

    /// Whole tokens, so that a small bucket is not split into parts that are of no use.
    private func reserveLimit(_ standing: Standing) -> Double { (Double(rate.burst) * share(standing)).rounded(.down) }

    /// The sum divided by the effective number of payers, sum² / squares: one payer that uses nearly everything counts as one, however many others use
    /// a little.
    private func isAboveMean(_ used: Double, _ index: Int) -> Bool {
        let level = levels[index]
        guard level.sum > 1e-9 else { return false }
        return used > level.squares / level.sum * (1 + 1e-3)
    }

    private func used(by payer: Payer, at now: Timestamp) -> Double {
        guard let usage = usage.value(of: payer) else { return 0 }
        return usage.amount * decay(over: now.since(usage.at))
    }

    private func decay(over duration: Duration) -> Double {
        let seconds = Double(max(0, duration.nanoseconds)) / 1e9
        return exp(-seconds / decayTime)
    }

    private mutating func take(_ cost: Double, _ payer: Payer, _ used: Double, _ index: Int, at now: Timestamp) {
        tokens = max(0, tokens - cost)
        levels[index].reserve = max(0, levels[index].reserve - cost)
        levels[index].sum += cost
        levels[index].squares += cost * (2 * used + cost)
        usage.set(Usage(amount: used + cost, at: now), of: payer)
        // Tokens taken elsewhere may leave fewer than are reserved.
        let reserved = levels.reduce(0) { $0 + $1.reserve }
        guard reserved > tokens, reserved > 0 else { return }
        for index in levels.indices { levels[index].reserve *= tokens / reserved }
    }

    private mutating func advance(to time: Timestamp, _ standing: Standing) -> Timestamp {
        let last = latest ?? time
        // As in RateLimiter: a greater step back means that the clock was set.
        let now = time > last || last.since(time) > Self.greatestDelay ? time : last
        latest = now
        let elapsed = Double(max(0, now.since(last).nanoseconds)) / 1e9
        tokens = min(Double(rate.burst), tokens + elapsed * refill)
        let factor = decay(over: now.since(last))
        for standing in Standing.allCases {
            let index = standing.rawValue
            levels[index].sum *= factor
            levels[index].squares *= factor * factor
            guard hasReserve(standing, at: now) else {
                levels[index].reserve = 0
                continue
            }
            levels[index].reserve = min(reserveLimit(standing), levels[index].reserve + elapsed * refill * share(standing))
        }
        levels[standing.rawValue].seen = now
        return now
    }
}
