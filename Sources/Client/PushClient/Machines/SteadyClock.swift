import Core

/// The client's monotonic time: it never goes back, regardless of the system clock, even across restarts.
///
/// Within a process it advances with the uptime. At a start it is the later of the system clock and the last stored time, so that pauses and ages
/// in records stay comparable. A clock that is set forward between two processes ends pauses early, once.
struct SteadyClock: Sendable {
    private let origin: Timestamp

    /// - Parameters:
    ///   - kept: The time in the records; nil at the very first start.
    ///   - clock: The system clock's time.
    ///   - uptime: The current time of any monotonic clock.
    init(kept: Timestamp?, clock: Timestamp, uptime: Duration) {
        origin = max(kept ?? clock, clock) - uptime
    }

    func time(at uptime: Duration) -> Timestamp {
        origin + uptime
    }
}

extension SteadyClock {
    private static let start = ContinuousClock.now
    /// The uptime of this process, by a monotonic clock.
    static var uptime: Duration { start.duration(to: .now) }
}
