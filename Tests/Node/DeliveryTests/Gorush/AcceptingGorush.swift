import Delivery
import Synchronization

/// Accepts all notifications, and records their ids.
final class AcceptingGorush: NotificationPosting {
    let certificateEnd: Int?
    let posted = Mutex<[String]>([])
    let checkCount = Mutex(0)

    init(certificateEnd: Int? = nil) {
        self.certificateEnd = certificateEnd
    }

    func post(_ notifications: [Delivery.Notification]) async -> PostResult {
        posted.withLock { $0 += notifications.map(\.id) }
        return PostResult(outcome: .accepted, postedTokenCount: notifications.count)
    }

    func healthFailure() async -> String? {
        checkCount.withLock { $0 += 1 }
        return nil
    }

    func showsRepetitionOnce(_ notification: Delivery.Notification) -> Bool { true }
}
