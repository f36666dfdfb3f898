/// A rate limit with a burst, `10/s burst 100`: a token bucket with a capacity of `burst` tokens that refills with `count` tokens per `unit`.
///
/// Times are in nanoseconds, like ``Timestamp``. So that no sum overflows, an empty bucket must refill within 100
/// years: `burst × interval ≤` ``longestFillTime``.
package struct RateLimit: Hashable, Sendable, CustomStringConvertible {
    package enum Unit: String, CaseIterable, Sendable {
        case second = "s"
        case minute = "min"
        case hour = "h"
        case day = "d"

        var seconds: Int64 {
            switch self {
            case .second: 1
            case .minute: 60
            case .hour: 3600
            case .day: 86_400
            }
        }
    }

    /// The reason why a text is not a valid rate limit.
    package enum Problem: Error, Hashable, Sendable {
        /// Not `N/s`, `N/min`, `N/h` or `N/d`, optionally followed by ` burst N`, each N from 1 to 1,000,000.
        case malformed
        /// The bucket would take more than 100 years to refill; the maximum burst at this rate.
        case burstTooLarge(maximum: Int)
    }

    private static let range = 1...1_000_000
    /// 100 years, in nanoseconds. Added to any time before 2160 it fits a ``Timestamp``.
    static let longestFillTime: Int64 = 36_500 * 86_400 * 1_000_000_000

    package let count: Int
    package let unit: Unit
    /// The capacity of the bucket.
    package let burst: Int

    /// - Parameters:
    ///   - count: tokens per unit.
    ///   - burst: the capacity of the bucket, by default `count`.
    /// - Precondition: count and burst are from 1 to 1,000,000, and the bucket refills within 100 years.
    package init(_ count: Int, per unit: Unit, burst: Int? = nil) {
        precondition(Self.range.contains(count) && Self.range.contains(burst ?? count))
        precondition(burst ?? count <= Self.largestBurst(count, per: unit))
        self.count = count
        self.unit = unit
        self.burst = burst ?? count
    }

    /// A multiple of the rate, as far as it can be represented. The burst stays, but is at least one unit's tokens.
    func times(_ factor: Int) -> RateLimit {
        let count = min(count * factor, Self.range.upperBound)
        return RateLimit(count, per: unit, burst: max(burst, count))
    }

    package init(parsing text: String) throws(Problem) {
        let words = text.split(separator: " ")
        guard let rate = words.first?.split(separator: "/", omittingEmptySubsequences: false), rate.count == 2,
            let count = Int(rate[0]), Self.range.contains(count), let unit = Unit(rawValue: String(rate[1]))
        else { throw .malformed }
        var burst = count
        if words.count > 1 {
            guard words.count == 3, words[1] == "burst", let number = Int(words[2]), Self.range.contains(number) else { throw .malformed }
            burst = number
        }
        let maximum = Self.largestBurst(count, per: unit)
        guard burst <= maximum else { throw .burstTooLarge(maximum: maximum) }
        self.init(count, per: unit, burst: burst)
    }

    /// Whether the rate is lower than one per minute. With its burst, every node's share of such a rate would be nearly the whole, so it is not divided:
    /// each node applies the whole.
    var isTooLowToDivide: Bool { Int64(count) * 60 < unit.seconds }

    /// The share of one of `nodeCount` nodes that count usage independently. A rate that ``isTooLowToDivide`` stays whole.
    ///
    /// The share of the burst is larger than 1/n: of b messages, distributed by hash, a node gets b/n on average, with a standard deviation of
    /// about √(b/n). Twice the deviation is added, so that senders within the limit are rarely refused.
    package func share(among nodeCount: Int) -> RateLimit {
        guard nodeCount > 1, !isTooLowToDivide else { return self }
        // The longest unit that can express the share is the most precise.
        var rate = (count: count, unit: unit)
        for longer in Unit.allCases where longer.seconds >= unit.seconds {
            let part = (count * Int(longer.seconds / unit.seconds) + nodeCount - 1) / nodeCount
            if Self.range.contains(part) { rate = (part, longer) }
        }
        let part = Double(burst) / Double(nodeCount)
        let bursts = [burst, Int((part + 2 * part.squareRoot()).rounded(.up)), Self.largestBurst(rate.count, per: rate.unit)]
        return RateLimit(rate.count, per: rate.unit, burst: max(1, bursts.min() ?? burst))
    }

    /// Whether a bucket with this limit can never be empty before one with the other limit is: both rate and burst are at least as high, and one is
    /// higher.
    func exceeds(_ other: RateLimit) -> Bool {
        let (own, others) = (Int64(count) * other.unit.seconds, Int64(other.count) * unit.seconds)
        return own >= others && burst >= other.burst && (own > others || burst > other.burst)
    }

    /// Tokens per second.
    package var perSecond: Double { Double(count) / Double(unit.seconds) }

    package var description: String { "\(count)/\(unit.rawValue) burst \(burst)" }

    /// The time between two tokens, in nanoseconds.
    var interval: Int64 { Self.interval(count, per: unit) }
    /// The time in which an empty bucket refills, in nanoseconds; at most ``longestFillTime``.
    var fillTime: Int64 { interval * Int64(burst) }

    private static func interval(_ count: Int, per unit: Unit) -> Int64 {
        max(1, unit.seconds * 1_000_000_000 / Int64(count))
    }

    private static func largestBurst(_ count: Int, per unit: Unit) -> Int {
        Int(clamping: longestFillTime / interval(count, per: unit))
    }
}
