/// A time on the monotonic clock: the type of every time that a state machine compares or keeps.
///
/// It never goes back, and continues while the machine sleeps; it means nothing after a reboot or on another machine. State machines take it
/// as an argument (`at now: Instant`) and never read the clock; their drivers pass ``now``. Times that are stored or sent are wall-clock
/// times (``Timestamp``); `Moment` pairs the two.
///
///     if now >= retryAt { … }               // compare
///     let retryAt = now + .seconds(5)       // an Instant and a Duration make an Instant
///     let age = now - startedAt             // two Instants make a Duration
///     try await retryAt.sleep()             // wait
///
/// The clock is `ContinuousClock`. Its own `Instant` type is not used because it is resilient, so that every state machine that stores one would have
/// an opaque layout. Tests write `.seconds(5)` for an instant 5 seconds after the epoch: see `SimulatedInstant.swift` in TestSupport.
@frozen
public struct Instant: Comparable, Hashable, Sendable, CustomStringConvertible {
    /// The time since the clock's arbitrary epoch, on Linux the start of the machine. Below zero for times before it.
    public let sinceEpoch: Duration

    /// - Parameter sinceEpoch: The time since the clock's epoch; negative for times before it.
    @inlinable
    public init(sinceEpoch: Duration) {
        self.sinceEpoch = sinceEpoch
    }

    /// The current time.
    public static var now: Instant { Instant(sinceEpoch: ContinuousClock.now - ContinuousClock().systemEpoch) }

    /// Whether `left` is earlier.
    @inlinable
    public static func < (left: Instant, right: Instant) -> Bool { left.sinceEpoch < right.sinceEpoch }

    /// The instant this long after another; a negative duration gives an earlier one.
    @inlinable
    public static func + (instant: Instant, duration: Duration) -> Instant { Instant(sinceEpoch: instant.sinceEpoch + duration) }

    /// The instant this long before another; a negative duration gives a later one.
    @inlinable
    public static func - (instant: Instant, duration: Duration) -> Instant { Instant(sinceEpoch: instant.sinceEpoch - duration) }

    /// How long `left` is after `right`; below zero when it is before.
    @inlinable
    public static func - (left: Instant, right: Instant) -> Duration { left.sinceEpoch - right.sinceEpoch }

    /// Moves the instant by a duration.
    @inlinable
    public static func += (instant: inout Instant, duration: Duration) { instant = instant + duration }

    /// Suspends the task until this time; returns at once when it has passed.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func sleep() async throws {
        try await Task.sleep(until: ContinuousClock().systemEpoch + sinceEpoch, clock: .continuous)
    }

    /// The time since the epoch, as `Duration` prints it: `12.5 seconds`.
    public var description: String { "\(sinceEpoch)" }
}
