import Core

/// Decides up to which time rows may be deleted. The clock and the uptime are inputs.
///
/// The system clock may be set at any time, also wrongly and back again. Deliveries must not be forgotten because of that. So a step forward
/// takes effect only after it has lasted for the whole retention; a step back takes effect at once.
struct RetentionClock {
    /// How much the clock may drift between two calls without counting as a step.
    private static let tolerance = Duration.seconds(60)

    private let retention: Duration
    /// The clock's time at the start, by its lowest recent reading.
    private var start: Timestamp?
    /// The uptime since which the clock is ahead of that.
    private var aheadSince: Duration?

    /// - Parameter retention: how long rows are kept.
    init(retention: Duration) {
        self.retention = retention
    }

    /// The time before which rows may be deleted. To be called every few seconds.
    ///
    /// - Parameter uptime: the time since the start, by a monotonic clock.
    mutating func cutoff(clock: Timestamp, uptime: Duration) -> Timestamp {
        let observed = clock - uptime
        if observed <= (start ?? observed) + Self.tolerance {
            (start, aheadSince) = (observed, nil)
        } else if let since = aheadSince, uptime - since >= retention {
            (start, aheadSince) = (observed, nil)
        } else if aheadSince == nil {
            aheadSince = uptime
        }
        return (start ?? observed) + uptime - retention
    }
}
