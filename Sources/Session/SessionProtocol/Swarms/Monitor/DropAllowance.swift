import Core

/// Rate limit of the invalid messages read from a connection. Some are normal: for up to 65 minutes a server reports messages of a subscription
/// that has ended. A server over the limit is read slowly, which bounds its cost.
struct DropAllowance: Sendable {
    struct Limits: Hashable, Sendable {
        /// Maximum allowance. A message costs 1, plus 1 for each 4 KiB.
        var burst = 10_000.0
        /// Allowance regained per second.
        var rate = 200.0
    }

    private static let pause = Duration.seconds(1)

    private let limits: Limits
    private var left: Double
    private var updatedAt: Instant

    init(limits: Limits, at now: Instant) {
        self.limits = limits
        left = limits.burst
        updatedAt = now
    }

    /// - Returns: How long not to read the connection if it has no allowance left; nil otherwise.
    mutating func spend(byteCount: Int, at now: Instant) -> Duration? {
        left = min(limits.burst, left + limits.rate * max((now - updatedAt) / .seconds(1), 0))
        updatedAt = max(updatedAt, now)
        left -= 1 + Double(byteCount / 4096)
        guard left < 0 else { return nil }
        // The pause is long enough to regain some allowance, so that not every message causes a pause.
        return Self.pause + .seconds(1) * (-left / max(limits.rate, 1))
    }
}
