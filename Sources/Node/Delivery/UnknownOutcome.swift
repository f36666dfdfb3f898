package import Core

/// Decides when a notification whose first post has an unknown outcome is posted again: an earlier run of this node, or the former owner of the
/// device's partition, marked it as possibly posted and did not record an answer.
///
///     shown once on the device ──▶ at once
///     shown each time          ──▶ after a bounded time from the first mark
///
/// The time of the first mark is stored, so that a restart or a hand-over does not restart the hold.
package struct UnknownOutcome: Sendable {
    /// The hold, counted from the first mark.
    package let hold: Duration

    /// The time from which a notification that a device would show twice may be posted again; at most ``hold`` from now, even if the clock was set
    /// back.
    ///
    /// - Parameters:
    ///   - markedAt: the time of the first mark.
    ///   - clock: the present time by the same clock.
    ///   - now: the present time by the clock of the result.
    package func end(markedAt: Timestamp, clock: Timestamp, now: Timestamp) -> Timestamp {
        now + min(max(.zero, markedAt.since(clock) + hold), hold)
    }

    /// - Parameters:
    ///   - end: from ``end(markedAt:clock:now:)``; nil when no post has an unknown outcome.
    ///   - showsOnce: whether the device shows a repetition in place of the first.
    /// - Returns: until when it must wait; nil when it may be posted now.
    package static func wait(until end: Timestamp?, showsOnce: @autoclosure () -> Bool, now: Timestamp) -> Timestamp? {
        guard let end, end > now, !showsOnce() else { return nil }
        return end
    }
}
