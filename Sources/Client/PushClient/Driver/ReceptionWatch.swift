/// Tells when a client may have missed messages: its process was suspended for some time, or its relay was detached.
struct ReceptionWatch: Sendable {
    /// The interval of ``note(isAttached:at:)``.
    static let period = Duration.seconds(60)
    /// Shorter gaps are left to the relay, and to the daily repetition of advertisements.
    static let shortestGap = Duration.seconds(600)

    /// When the relay was last seen attached; at first, when the run began.
    private var attachedAt: Duration

    /// - Parameter now: The time of any monotonic clock that goes on during a suspension.
    init(at now: Duration) {
        attachedAt = now
    }

    /// Records whether the relay is attached.
    ///
    /// - Returns: Whether it is attached again after a gap.
    mutating func note(isAttached: Bool, at now: Duration) -> Bool {
        guard isAttached else { return false }
        defer { attachedAt = now }
        return now - attachedAt >= Self.shortestGap
    }
}
