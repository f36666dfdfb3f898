/// One instant on two clocks.
package struct Moment: Hashable, Sendable {
    /// Since some start; never goes back. For intervals. Below zero in an earlier life.
    package let uptime: Duration
    /// The local clock of the day, which may be set back and forth. For windows of the store.
    package let clock: Timestamp

    package init(uptime: Duration, clock: Timestamp) {
        self.uptime = uptime
        self.clock = clock
    }

    private static let start = ContinuousClock.now

    package static func now() -> Moment {
        Moment(uptime: start.duration(to: .now), clock: .now())
    }

    /// What the clock would have shown when the uptime began.
    package var origin: Timestamp { clock - uptime }

    /// By the clock of `now`, when this was. If the clock was set meanwhile, the earlier of what it showed then and what it would have shown.
    package func earliestClock(at now: Moment) -> Timestamp {
        min(clock, now.clock - (now.uptime - uptime))
    }

    /// Not after either, on each of the clocks.
    package static func earliest(_ one: Moment, _ other: Moment) -> Moment {
        Moment(uptime: min(one.uptime, other.uptime), clock: min(one.clock, other.clock))
    }

    /// So long before this, on both clocks.
    package static func - (moment: Moment, duration: Duration) -> Moment {
        Moment(uptime: moment.uptime - duration, clock: moment.clock - duration)
    }
}
