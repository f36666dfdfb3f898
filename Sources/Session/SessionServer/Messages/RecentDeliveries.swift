import Core
import Synchronization

/// A cache of the latest durable deliveries. The other servers of a swarm report the same message within seconds; a delivery in this cache is
/// neither looked up nor encrypted again. A delivery that is not in the cache may still have been made: the store decides.
final class RecentDeliveries: Sendable {
    /// About 30 bytes per entry; at most twice as many entries are kept.
    private static let capacity = 20_000

    private let made = Mutex(GenerationalCache<DeliveryID, Timestamp>(capacity: capacity))

    /// Adds deliveries that are durable.
    func add(_ deliveries: some Sequence<DeliveryID>, at now: Timestamp) {
        made.withLock { made in
            for delivery in deliveries { made.set(now, of: delivery) }
        }
    }

    /// Whether a delivery is known to have been made in the last 24 hours.
    func contains(_ delivery: DeliveryID, at now: Timestamp) -> Bool {
        guard let time = made.withLock({ $0.value(of: delivery) }) else { return false }
        return time > now - SubscriptionRetention.deliveries
    }
}
