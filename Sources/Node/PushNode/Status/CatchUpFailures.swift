import Core
import Synchronization

/// Decides whether messages are missing because a relay could not look them up in a store. Failures and time come in, the reason of an alarm goes out.
///
///     none ──(failure)──▶ pending ──(a relay has all messages until then)──▶ none
///                            └────────────(20 s)────────────▶ none, and an alarm
///
/// A message comes over each of several relays, so one that has no store misses nothing that another one received or looked up.
final class CatchUpFailures: Sendable {
    /// The time for another relay, or for another attempt: a store is read twice, 5 s apart, and may first have to be found.
    static let timeout = Duration.seconds(20)

    private let pending = Mutex<(reason: String, at: Timestamp)?>(nil)

    /// Failures besides a pending one are ignored.
    func add(_ reason: String, at now: Timestamp) {
        pending.withLock { $0 = $0 ?? (reason, now) }
    }

    /// - Parameter seenUntil: the time up to which, on each pubsub topic, a relay has delivered all messages; nil if unknown.
    /// - Returns: the reason of an alarm, once for each pending failure.
    func alarm(at now: Timestamp, seenUntil: () -> Timestamp?) -> String? {
        pending.withLock { pending in
            guard let failure = pending else { return nil }
            let isCovered = seenUntil().map { $0 >= failure.at } ?? false
            guard isCovered || now.since(failure.at) >= Self.timeout else { return nil }
            pending = nil
            return isCovered ? nil : failure.reason
        }
    }
}
