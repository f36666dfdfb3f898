/// How long to wait before the next attempt after consecutive failures: exponential backoff with jitter.
///
/// The nominal delay starts at ``initial`` and doubles with each failure up to ``maximum``. Jitter removes a random part of its upper half, so that
/// clients that lost the same server at the same time do not all return at once.
///
///     nominal(n) = min(maximum, initial · 2ⁿ⁻¹)           n consecutive failures
///     delay(n)   = nominal(n) · (1 + jitter) / 2          jitter in 0…1
package struct ExponentialBackoff: Hashable, Sendable {
    /// The nominal delay after the first failure.
    package var initial: Duration
    /// The longest delay.
    package var maximum: Duration

    package init(initial: Duration = .milliseconds(250), maximum: Duration = .seconds(10)) {
        self.initial = initial
        self.maximum = maximum
    }

    /// - Parameters:
    ///   - failures: Consecutive failures, the latest included: 1 after the first. Smaller numbers count as 1.
    ///   - jitter: A random number from 0 to 1, drawn by the caller so that a state machine stays deterministic. Values outside are clamped.
    /// - Returns: Between half of the nominal delay and all of it.
    package func delay(afterFailures failures: Int, jitter: Double) -> Duration {
        // 20 doublings exceed any sensible maximum; more would only overflow.
        let nominal = min(maximum, initial * (1 << min(max(failures, 1) - 1, 20)))
        return nominal / 2 + nominal / 2 * min(max(jitter, 0), 1)
    }
}
