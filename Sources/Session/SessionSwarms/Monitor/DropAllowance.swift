import Core

/// How many invalid messages a connection may send. Some are normal: for up to 65 minutes a server reports messages of a subscription that
/// has ended. A server that sends more than it may is disconnected, so that it costs no more than reading them.
struct DropAllowance: Sendable {
    struct Limits: Hashable, Sendable {
        /// At once. A message costs 1, and 1 more for each 4 KiB.
        var burst = 10_000.0
        /// Regained each second.
        var rate = 200.0
    }

    private let limits: Limits
    private var left: Double
    private var updatedAt: Instant

    init(limits: Limits, at now: Instant) {
        self.limits = limits
        left = limits.burst
        updatedAt = now
    }

    /// - Parameters:
    ///   - byteCount: Of the message.
    ///   - now: The time.
    /// - Returns: false when the connection has no allowance left.
    mutating func spend(byteCount: Int, at now: Instant) -> Bool {
        left = min(limits.burst, left + limits.rate * max((now - updatedAt) / .seconds(1), 0))
        updatedAt = max(updatedAt, now)
        left -= 1 + Double(byteCount / 4096)
        return left >= 0
    }
}
