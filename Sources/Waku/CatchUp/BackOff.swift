/// How long to wait after failures in a row: twice as long each time, up to a limit, less up to half of it by chance, so that many who lost
/// the same node do not come back in one instant.
package struct BackOff: Hashable, Sendable {
    package var initial: Duration = .milliseconds(250)
    package var maximum: Duration = .seconds(10)

    package init(initial: Duration = .milliseconds(250), maximum: Duration = .seconds(10)) {
        self.initial = initial
        self.maximum = maximum
    }

    /// - Parameters:
    ///   - failures: In a row; 1 for the first.
    ///   - jitter: A random number from 0 to 1.
    package func delay(failures: Int, jitter: Double) -> Duration {
        // Twenty doublings are beyond any maximum: more would only overflow.
        let full = min(maximum, initial * (1 << min(max(failures - 1, 0), 20)))
        return full / 2 + full / 2 * min(max(jitter, 0), 1)
    }
}
