package import Core
import Foundation

/// A rate in total that is divided by standing, then among the payers of each standing, at once and without a queue. Time is an input.
///
/// A token bucket of which a part is reserved for each standing; in small buckets, for each standing that was seen lately. A reserve refills at its
/// share of the rate; when it is full, its part of the rate is open to all.
///
///     ask ──▶ turn? (the fair share / what the payer asked for lately) ──▶ tokens? ──▶ admitted
///
/// The payers of a standing that together ask for more than there is have a fair share each: the amount at which they get exactly what there is,
/// as in core-stateless fair queueing. A payer that asked for less in the last interval is admitted; one that asked for n times as much is admitted once in
/// n times, by chance. So a payer gains nothing by asking more often, or at the moment at which a token appears. A payer of a single message has the
/// same chance as any other.
package struct FairBudget: Sendable {
    /// A standing that was not seen for this time has no reserve.
    private static var idleLimit: Duration { .seconds(600) }
    /// See ``RateLimiter``.
    private static var greatestDelay: Duration { .seconds(10) }
    private static var payerCapacity: Int { 16_384 }
    /// Smaller buckets are exact: while payers together have asked for no more than there is, none is refused, and a standing has a reserve only after
    /// it was seen.
    private static var smallestDividedBurst: Int { 256 }
    /// The range of the fair share, as a power of e: from all tokens of a bucket to a small part of one.
    private static var shareRange: Double { 20 }
    /// The least number of tokens by which a fair share is found: with fewer it would vary much with each of them.
    private static var leastDepth: Double { 60 }

    /// The amount asked for, admitted or not. Decays by the factor e within ``window``.
    private struct Asked {
        var amount: Double
        var at: Timestamp
    }

    private struct Level {
        var reserve = 0.0
        var seen: Timestamp?
        /// Sinks with each turn, and rises with time, as fast as there are tokens: see ``fairShare(_:at:)``.
        var slack = Double.infinity
        /// The tokens open to it at the start of the present step.
        var before = 0.0
    }

    private let burst: Double
    /// Tokens per second.
    private let refill: Double
    private var tokens: Double
    private var levels = [Level](repeating: Level(), count: Standing.allCases.count)
    private var asked = GenerationalCache<Payer, Asked>(capacity: payerCapacity)
    private var latest: Timestamp?
    private var random: SplitMix64

    package init(_ rate: RateLimit, seed: UInt64 = .random(in: .min ... .max)) {
        random = SplitMix64(seed: seed)
        burst = Double(rate.burst)
        refill = 1e9 / Double(rate.interval)
        tokens = burst
        guard isDivided else { return }
        for standing in Standing.allCases { levels[standing.rawValue].reserve = reserveLimit(standing) }
    }

    /// Takes `cost` tokens. Returns false, without taking any, if it is not the payer's turn or the standing's tokens do not suffice. A cost above what
    /// is open to the standing in a full bucket takes all of that.
    package mutating func admits(_ payer: Payer, _ standing: Standing, cost: Int = 1, at time: Timestamp) -> Bool {
        let now = advance(to: time, standing)
        let cost = min(Double(max(cost, 1)), capacity(for: standing, at: now))
        let amount = cost + (asked.value(of: payer).map { $0.amount * exp(-seconds(from: $0.at, to: now) / window) } ?? 0)
        asked.set(Asked(amount: amount, at: now), of: payer)
        if let share = fairShare(standing, at: now), Double.random(in: 0..<1, using: &random) * amount >= share { return false }
        let index = standing.rawValue
        // A turn counts even if there is no token for it: otherwise payers would have turns until they find one, and each token as it appears.
        levels[index].slack = max(lowestSlack(standing, at: now), levels[index].slack - cost)
        // A rounding error must not refuse the last token.
        guard available(to: index) + 1e-6 >= cost else { return false }
        tokens = max(0, tokens - cost)
        levels[index].reserve = max(0, levels[index].reserve - cost)
        return true
    }

    // MARK: Fair share

    /// The time over which a payer's demand is measured, in seconds.
    private var window: Double { max(burst, Self.leastDepth) / refill }

    /// The amount that each payer may have asked for within ``window``; nil while there is enough for all.
    ///
    /// Turns lower it until payers have as many turns as there are tokens. It follows the slack exponentially, since it may be all tokens of the
    /// bucket, for one payer, or a thousandth of one, for a flood of payers of one message each.
    private func fairShare(_ standing: Standing, at now: Timestamp) -> Double? {
        let missing = dividedSlack(standing, at: now) - levels[standing.rawValue].slack
        guard missing > 1e-6 else { return nil }
        return max(burst, Self.leastDepth) * exp(-missing * Self.shareRange / depth(standing, at: now))
    }

    /// The slack below which tokens are divided: in a large bucket half of its tokens are left then.
    private func dividedSlack(_ standing: Standing, at now: Timestamp) -> Double { isDivided ? capacity(for: standing, at: now) / 2 : 0 }

    private func depth(_ standing: Standing, at now: Timestamp) -> Double {
        isDivided ? capacity(for: standing, at: now) / 2 : Self.leastDepth
    }

    private func lowestSlack(_ standing: Standing, at now: Timestamp) -> Double {
        dividedSlack(standing, at: now) - depth(standing, at: now)
    }

    // MARK: Tokens

    private var isDivided: Bool { burst >= Double(Self.smallestDividedBurst) }

    private func hasReserve(_ standing: Standing, at now: Timestamp) -> Bool {
        isDivided || levels[standing.rawValue].seen.map { now.since($0) <= Self.idleLimit } ?? false
    }

    private func share(_ standing: Standing) -> Double { Double(standing.share) / 256 }

    /// Whole tokens, so that a small bucket is not split into parts that are of no use.
    private func reserveLimit(_ standing: Standing) -> Double { (burst * share(standing)).rounded(.down) }

    /// The tokens of an idle bucket that are open to a standing.
    private func capacity(for standing: Standing, at now: Timestamp) -> Double {
        Standing.allCases.reduce(burst) { $0 - ($1 == standing || !hasReserve($1, at: now) ? 0 : reserveLimit($1)) }
    }

    private func available(to index: Int) -> Double {
        max(levels[index].reserve, levels.indices.reduce(tokens) { $0 - ($1 == index ? 0 : levels[$1].reserve) })
    }

    private func seconds(from start: Timestamp, to end: Timestamp) -> Double { Double(max(0, end.since(start).nanoseconds)) / 1e9 }

    private mutating func advance(to time: Timestamp, _ standing: Standing) -> Timestamp {
        let last = latest ?? time
        // As in RateLimiter: a greater step back means that the clock was set.
        let now = time > last || last.since(time) > Self.greatestDelay ? time : last
        latest = now
        let elapsed = seconds(from: last, to: now)
        for index in levels.indices { levels[index].before = available(to: index) }
        tokens = min(burst, tokens + elapsed * refill)
        for standing in Standing.allCases {
            let reserve = levels[standing.rawValue].reserve + elapsed * refill * share(standing)
            levels[standing.rawValue].reserve = hasReserve(standing, at: now) ? min(reserveLimit(standing), reserve) : 0
        }
        for standing in Standing.allCases {
            let (index, capacity) = (standing.rawValue, capacity(for: standing, at: now))
            // The rate if half of the tokens were left on average, and twice as much in a full bucket.
            let supply = refill * (levels[index].before + available(to: index)) / capacity
            levels[index].slack = min(capacity, levels[index].slack + elapsed * supply)
        }
        levels[standing.rawValue].seen = now
        return now
    }
}
