import Waku

/// Before when things may be forgotten. The clock and the time since the start come in.
///
/// The system's clock may be set at any moment, wrongly too, and back again: what was delivered must not be forgotten for that. So a step
/// forward counts only once it has lasted for as long as things are remembered; a step back counts at once.
struct ForgettingClock {
    /// What a clock may gain between two looks without having been set.
    private static let tolerance = Duration.seconds(60)

    private let memory: Duration
    /// What the clock showed at the start, by the lowest of late.
    private var start: Timestamp?
    /// Since when the clock is ahead of that.
    private var aheadSince: Duration?

    /// - Parameter memory: for how long things are remembered.
    init(memory: Duration) {
        self.memory = memory
    }

    /// To be asked every few seconds.
    ///
    /// - Parameter uptime: since the start, by a clock that is never set.
    mutating func cutoff(clock: Timestamp, uptime: Duration) -> Timestamp {
        let observed = clock - uptime
        if observed <= (start ?? observed) + Self.tolerance {
            (start, aheadSince) = (observed, nil)
        } else if let since = aheadSince, uptime - since >= memory {
            (start, aheadSince) = (observed, nil)
        } else if aheadSince == nil {
            aheadSince = uptime
        }
        return (start ?? observed) + uptime - memory
    }
}
