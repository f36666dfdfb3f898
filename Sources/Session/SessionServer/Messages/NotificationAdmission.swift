import RateLimits
import Core
import Synchronization

/// Asks the limit of a device for its notifications. Of one that was admitted it is asked once, however often the store decides about it: when what was
/// read has changed meanwhile, after a failure, and for each storage server that reports the message.
final class NotificationAdmission: Sendable {
    /// Some 100 bytes each, at most twice as many.
    private static let capacity = 20_000

    private let gate: SessionGate
    private let admitted = Mutex(GenerationalCache<DeliveryID, Void>(capacity: capacity))

    init(_ gate: SessionGate) {
        self.gate = gate
    }

    func admits(_ notification: PreparedMessage.Notification, at now: Timestamp) -> Bool {
        if gate.limiter.isUnlimited || admitted.withLock({ $0.contains(notification.delivery) }) { return true }
        guard gate.admitsNotification(for: notification.row, at: now) else { return false }
        admitted.withLock { $0.set((), of: notification.delivery) }
        return true
    }
}
