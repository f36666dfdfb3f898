import Primitives
package import Waku

/// Token buckets, one a key, as a value: time comes in.
///
/// Of a bucket only the time is kept at which it is full again (the generic cell rate algorithm). A key that nothing is kept of has a full one.
/// Bounded to two generations of `capacity` keys each (`GenerationalCache`): a sender with more keys than that is not limited per key.
package struct RateLimiter<Key: Hashable & Sendable>: Sendable {
    /// Askers look at the clock before it is their turn: a time that is older than the last one by so much at most is late, and the clock
    /// was not set back.
    private static var greatestDelay: Duration { .seconds(10) }

    private let interval: Int64
    private let depth: Int64
    private let burst: Int
    /// The time at which a bucket is full again.
    private var fullTimes: GenerationalCache<Key, Timestamp>
    private var latest = Timestamp(rawValue: .min)

    package init(_ limit: RateLimit, capacity: Int = 50_000) {
        interval = limit.interval
        depth = limit.fillTime
        burst = limit.burst
        fullTimes = GenerationalCache(capacity: capacity)
    }

    /// Takes `cost` from the bucket of `key`; false when it holds less, and then it stays as it was. What costs more than a bucket holds takes
    /// a full one.
    package mutating func admits(_ key: Key, cost: Int = 1, at time: Timestamp) -> Bool {
        if time > latest || latest.since(time) > Self.greatestDelay { latest = time }
        let now = latest
        var full = max(fullTimes.value(of: key) ?? now, now)
        // After a step back of the clock nobody waits longer than for a whole bucket.
        if full.since(now).nanoseconds > depth { full = now }
        // No more than the depth, which was checked.
        let next = full + .nanoseconds(cost == 1 ? interval : min(Int64(min(cost, burst)) * interval, depth))
        guard next.since(now).nanoseconds <= depth else { return false }
        fullTimes.set(next, of: key)
        return true
    }

    /// How many keys are kept.
    package var count: Int { fullTimes.count }
}
