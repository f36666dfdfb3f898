package import Core

/// A token bucket for each key. Time is an input.
///
/// Stores for each bucket only the time at which it is full again (generic cell rate algorithm). Unknown keys have a full bucket.
/// Bounded to two generations of `capacity` keys each (`GenerationalCache`): a sender with more keys than that is not limited per key.
package struct RateLimiter: Sendable {
    /// Callers read the clock before they get the lock, so times may arrive out of order. A time that is older than the last one by more than this
    /// means that the clock was set back.
    private static let greatestDelay = Duration.seconds(10)

    private let interval: Int64
    private let depth: Int64
    private let burst: Int
    /// The time at which a bucket is full again.
    private var fullTimes: GenerationalCache<[UInt8], Timestamp>
    private var latest = Timestamp(rawValue: .min)

    package init(_ limit: RateLimit, capacity: Int = 50_000) {
        interval = limit.interval
        depth = limit.fillTime
        burst = limit.burst
        fullTimes = GenerationalCache(capacity: capacity)
    }

    /// Takes `cost` tokens from the bucket of `key`. Returns false if it has fewer, without taking any. A cost above the capacity takes a full
    /// bucket.
    package mutating func admits(_ key: [UInt8], cost: Int = 1, at time: Timestamp) -> Bool {
        if time > latest || latest.since(time) > Self.greatestDelay { latest = time }
        let now = latest
        var full = max(fullTimes.value(of: key) ?? now, now)
        // After a step back of the clock the wait is limited to the refill of a whole bucket.
        if full.since(now).nanoseconds > depth { full = now }
        // At most the depth, so the sum can't overflow.
        let next = full + .nanoseconds(cost == 1 ? interval : min(Int64(min(cost, burst)) * interval, depth))
        guard next.since(now).nanoseconds <= depth else { return false }
        fullTimes.set(next, of: key)
        return true
    }

    /// Number of stored keys.
    package var count: Int { fullTimes.count }
}
