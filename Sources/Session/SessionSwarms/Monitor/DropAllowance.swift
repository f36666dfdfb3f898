import Core

/// How many invalid messages are read of a connection. Some are normal: for up to 65 minutes a server reports messages of a subscription that
/// has ended. A server that sends more is read slowly, so that it costs no more than reading these.
struct DropAllowance: Sendable {
    struct Limits: Hashable, Sendable {
        /// At once. A message costs 1, and 1 more for each 4 KiB.
        var burst = 10_000.0
        /// Regained each second.
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

    /// - Parameters:
    ///   - byteCount: Of the message.
    ///   - now: The time.
    /// - Returns: How long the connection is not read, when it has no allowance left; nil while it has.
    mutating func spend(byteCount: Int, at now: Instant) -> Duration? {
        left = min(limits.burst, left + limits.rate * max((now - updatedAt) / .seconds(1), 0))
        updatedAt = max(updatedAt, now)
        left -= 1 + Double(byteCount / 4096)
        guard left < 0 else { return nil }
        // Until there is something to read with, rather than for each message.
        return Self.pause + .seconds(1) * (-left / max(limits.rate, 1))
    }
}
