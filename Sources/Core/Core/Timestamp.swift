import Foundation

/// Wall-clock time: Unix time in nanoseconds, as messages carry it. Never converted to a Double: current values are beyond 2^53.
public struct Timestamp: RawRepresentable, Hashable, Comparable, Sendable {
    /// Nanoseconds since 1970-01-01 00:00 UTC, negative before. The range is 1677 to 2262.
    public let rawValue: Int64
    /// - Parameter rawValue: Any number of nanoseconds, as received from other nodes.
    public init(rawValue: Int64) { self.rawValue = rawValue }

    /// Whether `left` is earlier.
    public static func < (left: Timestamp, right: Timestamp) -> Bool { left.rawValue < right.rawValue }

    /// The system's clock.
    public static func now() -> Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(rawValue: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Saturates at the ends of the range: senders choose timestamps freely, so that sums must not trap.
    public static func + (time: Timestamp, duration: Duration) -> Timestamp {
        let (sum, overflow) = time.rawValue.addingReportingOverflow(duration.nanoseconds)
        return Timestamp(rawValue: overflow ? (duration < .zero ? .min : .max) : sum)
    }

    /// Saturates at the ends of the range, like ``+(_:_:)``.
    public static func - (time: Timestamp, duration: Duration) -> Timestamp {
        time + .nanoseconds(-duration.nanoseconds)
    }

    /// The duration from `earlier` to this time, saturated at 292 years.
    public func since(_ earlier: Timestamp) -> Duration {
        let (difference, overflow) = rawValue.subtractingReportingOverflow(earlier.rawValue)
        return .nanoseconds(overflow ? (rawValue < earlier.rawValue ? .min : .max) : difference)
    }
}

extension Duration {
    /// Whole nanoseconds, saturated at ±`Int64.max` (292 years), so that the result can be negated.
    public var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return seconds < 0 ? -.max : .max }
        let (sum, carried) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return carried ? (seconds < 0 ? -.max : .max) : max(sum, -.max)
    }
}
