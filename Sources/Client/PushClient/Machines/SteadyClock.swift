import Core

/// The client's time: it never goes back, whatever happens to the machine's clock, not over restarts either.
///
/// While a process runs it goes with the uptime. At a start it is what the clock shows, but no less than what was last kept: pauses and ages
/// in records stay comparable. A clock that is set forward between two lives ends pauses early, once.
struct SteadyClock: Sendable {
    private let origin: Timestamp

    /// - Parameters:
    ///   - kept: The time in the records; nil at the very first start.
    ///   - clock: What the machine's clock shows.
    ///   - uptime: Of any steady clock, now.
    init(kept: Timestamp?, clock: Timestamp, uptime: Duration) {
        origin = max(kept ?? clock, clock) - uptime
    }

    func time(at uptime: Duration) -> Timestamp {
        origin + uptime
    }
}

extension SteadyClock {
    private static let start = ContinuousClock.now
    /// Of this process, by a clock that is never set.
    static var uptime: Duration { start.duration(to: .now) }
}
