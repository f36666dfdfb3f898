package import Core
import Waku

/// Decides when a notification is posted again whose first post has an unknown outcome: an earlier run of this node, or another node that owned
/// the device's partition before, marked it as possibly posted and did not record an answer.
///
///     shown once on the device ──▶ at once
///     shown each time          ──▶ after a bounded time from the first mark
///
/// The time from the first mark is stored with the mark, so that no restart and no hand-over begins it anew.
package struct UnknownOutcome: Sendable {
    /// From the first mark.
    package let hold: Duration

    package init(hold: Duration) {
        self.hold = hold
    }

    /// When a notification that a device would show twice may be posted again, at most ``hold`` from now: the clock may have been set back since.
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
    ///   - now: the present time.
    /// - Returns: until when it must wait; nil when it may be posted now.
    package static func wait(until end: Timestamp?, showsOnce: @autoclosure () -> Bool, now: Timestamp) -> Timestamp? {
        guard let end, end > now, !showsOnce() else { return nil }
        return end
    }
}
