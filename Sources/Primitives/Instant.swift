/// A time on the monotonic clock: the type of every time that a state machine compares or keeps.
///
/// It is `ContinuousClock.Instant` under a short name. It has nanosecond resolution, never goes back, goes on while the machine sleeps,
/// and means nothing after a reboot or on another machine. State machines take it as an argument (`at now: Instant`) and never read the
/// clock; their drivers pass `.now`. Times that are stored or sent are wall-clock times (`Timestamp` in Waku); `Moment` in Waku
/// pairs the two.
///
///     if now >= retryAt { … }                 // compare
///     let retryAt = now + .seconds(5)         // an Instant and a Duration make an Instant
///     let age = now - startedAt               // two Instants make a Duration
///     try await Task.sleep(until: retryAt)    // wait
///
/// Tests write `.seconds(5)` for an instant 5 seconds after an arbitrary origin: see `SimulatedInstant.swift` in TestSupport.
public typealias Instant = ContinuousClock.Instant
