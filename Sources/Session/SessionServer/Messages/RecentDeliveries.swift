import Delivery
import Core
import SessionProtocol
import Synchronization

/// The deliveries that were made last, all of them durable: the other servers of a swarm report the same message within seconds, and what is known here
/// is neither looked up nor encrypted again. What is not known here may still have been made before: the store decides.
final class RecentDeliveries: Sendable {
    /// Some 200 bytes each, at most twice as many.
    private static let capacity = 20_000

    private let made = Mutex(GenerationalCache<DeliveryID, Timestamp>(capacity: capacity))

    /// They are in the store from now on.
    func add(_ deliveries: some Sequence<DeliveryID>, at now: Timestamp) {
        made.withLock { made in
            for delivery in deliveries { made.set(now, of: delivery) }
        }
    }

    /// Whether a delivery was made in the last 24 hours; false when that is not known.
    func contains(_ delivery: DeliveryID, at now: Timestamp) -> Bool {
        guard let time = made.withLock({ $0.value(of: delivery) }) else { return false }
        return time > now - SubscriptionRetention.deliveries
    }
}
