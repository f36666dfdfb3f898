/// One point in time on two clocks: the monotonic one for intervals, the wall clock for time windows of a store.
package struct Moment: Hashable, Sendable {
    package let instant: Instant
    /// The system's wall clock, which may be set forward or back.
    package let wallClock: Timestamp

    package init(instant: Instant, wallClock: Timestamp) {
        self.instant = instant
        self.wallClock = wallClock
    }

    package static func now() -> Moment {
        Moment(instant: .now, wallClock: .now())
    }

    /// The wall clock time of the monotonic clock's epoch, according to the wall clock at this moment. It changes only when the wall clock is set.
    package var wallClockAtEpoch: Timestamp { wallClock - instant.sinceEpoch }

    /// This moment as a wall clock time, if the wall clock may have been set since: the earlier of its reading at this moment and the reading that
    /// the current wall clock (`now`) implies.
    package func earliestWallClock(at now: Moment) -> Timestamp {
        min(wallClock, now.wallClock - (now.instant - instant))
    }

    /// The earlier time of each clock.
    package static func earliest(_ one: Moment, _ other: Moment) -> Moment {
        Moment(instant: min(one.instant, other.instant), wallClock: min(one.wallClock, other.wallClock))
    }

    /// The moment this long before, on both clocks.
    package static func - (moment: Moment, duration: Duration) -> Moment {
        Moment(instant: moment.instant - duration, wallClock: moment.wallClock - duration)
    }
}
