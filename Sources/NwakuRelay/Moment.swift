import Waku

/// One instant on two clocks.
struct Moment: Hashable, Sendable {
    /// Since some start; never goes back. For intervals. Below zero in an earlier life.
    let uptime: Duration
    /// The local clock of the day, which may be set back and forth. For windows of the store.
    let clock: Timestamp

    private static let start = ContinuousClock.now

    static func now() -> Moment {
        Moment(uptime: start.duration(to: .now), clock: .now())
    }

    /// What the clock would have shown when the uptime began.
    var origin: Timestamp { clock - uptime }

    /// By the clock of `now`, when this was. If the clock was set meanwhile, the earlier of what it showed then and what it would have shown.
    func earliestClock(at now: Moment) -> Timestamp {
        min(clock, now.clock - (now.uptime - uptime))
    }

    /// Not after either, on each of the clocks.
    static func earliest(_ one: Moment, _ other: Moment) -> Moment {
        Moment(uptime: min(one.uptime, other.uptime), clock: min(one.clock, other.clock))
    }

    /// So long before this, on both clocks.
    static func - (moment: Moment, duration: Duration) -> Moment {
        Moment(uptime: moment.uptime - duration, clock: moment.clock - duration)
    }
}
