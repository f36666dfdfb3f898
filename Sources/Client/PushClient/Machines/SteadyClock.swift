import Core

/// The client's monotonic time: it never goes back, regardless of the system clock, even across restarts.
///
/// Within a process it advances with the uptime, between two processes with the system clock. After that was set back, this one is ahead of it by the
/// stored ``lead``, until it has caught up: pauses and ages in records stay comparable, and time passes as before. A clock that is set forward between
/// two processes ends pauses early, once.
struct SteadyClock: Sendable {
    private let origin: Timestamp
    /// How far it was ahead of the system clock when that was first behind it. A start at which the system clock is further behind, as before it is set
    /// for the first time after a boot, does not change it.
    let lead: Duration

    /// - Parameters:
    ///   - kept: The time in the records; nil at the very first start.
    ///   - lead: The lead in the records.
    ///   - clock: The system clock's time.
    ///   - uptime: The current time of any monotonic clock.
    init(kept: Timestamp?, lead: Duration, clock: Timestamp, uptime: Duration) {
        guard let kept, kept > clock else {
            (origin, self.lead) = (clock - uptime, .zero)
            return
        }
        origin = max(kept, clock + lead) - uptime
        self.lead = lead > .zero ? lead : kept.since(clock)
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
