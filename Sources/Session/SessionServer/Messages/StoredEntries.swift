import SessionProtocol
import Storage
import Synchronization
import Core

/// Reads the monitor entries of subscriptions from the store at the time of each request.
///
/// The monitor is set later, because it is created with its source of entries. It can't remove missing subscriptions by itself: ``SharedMonitoring``
/// around it must learn of them too, at once, so that a subscription that is stored again meanwhile is not removed late.
final class StoredEntries: MonitorEntrySource {
    private static let chunk = 500

    private let store: any Store
    private let subscriptions: Subscriptions
    /// Holds this source of its entries.
    private let monitor = Mutex(Weak())

    private struct Weak {
        weak var monitor: (any SubscriptionMonitoring)?
    }

    init(_ store: any Store) {
        self.store = store
        subscriptions = Subscriptions(store.sealer)
    }

    /// Sets the monitor from which missing subscriptions are removed: those ended by delivery because their token is dead, and those removed by
    /// another process.
    func remove(from monitor: any SubscriptionMonitoring) {
        self.monitor.withLock { $0.monitor = monitor }
    }

    func entries(of ids: [SubscriptionID]) async throws -> [SubscriptionID: MonitorEntry] {
        var entries: [SubscriptionID: MonitorEntry] = [:]
        for chunk in ids.chunks(of: Self.chunk) {
            entries.merge(try await store.fetch(subscriptions.monitorEntries(of: Array(chunk)))) { first, _ in first }
        }
        if entries.count < ids.count, let monitor = monitor.withLock(\.monitor) {
            for id in ids where entries[id] == nil { monitor.remove(id) }
        }
        return entries
    }
}
