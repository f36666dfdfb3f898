import RateLimits
import Core
import SessionProtocol
import Synchronization

/// Applies the rate limit of a device to its notifications. An admitted notification counts once, even if the store decides on it several
/// times: when rows have changed since they were read, after a failure, and for each storage server that reports the message.
final class NotificationAdmission: Sendable {
    /// About 20 bytes per entry; at most twice as many entries are kept.
    private static let capacity = 20_000

    private let limits: SessionLimits
    private let admitted = Mutex(GenerationalCache<DeliveryID, Void>(capacity: capacity))

    init(_ limits: SessionLimits) {
        self.limits = limits
    }

    func admits(_ delivery: DeliveryID, ofRow row: Int64, of account: AccountID, at now: Timestamp) -> Bool {
        if limits.limiter.isUnlimited || admitted.withLock({ $0.contains(delivery) }) { return true }
        guard limits.admitsNotification(for: row, of: account, at: now) else { return false }
        admitted.withLock { $0.set((), of: delivery) }
        return true
    }

    func admits(_ notification: PreparedMessage.Notification, at now: Timestamp) -> Bool {
        admits(notification.delivery, ofRow: notification.row, of: notification.account, at: now)
    }
}
