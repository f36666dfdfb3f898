import NodeMetrics
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
    private let errors: RepeatedErrors
    /// Holds this source of its entries.
    private let monitor = Mutex(Weak())

    private struct Weak {
        weak var monitor: (any SubscriptionMonitoring)?
    }

    init(_ store: any Store, errors: RepeatedErrors) {
        self.store = store
        self.errors = errors
        subscriptions = Subscriptions(store.sealer)
    }

    /// Sets the monitor from which missing subscriptions are removed: those ended by delivery because their token is dead, and those removed by
    /// another process.
    func remove(from monitor: any SubscriptionMonitoring) {
        self.monitor.withLock { $0.monitor = monitor }
    }

    /// Subscriptions on damaged pages are left out, and are not removed.
    func entries(of ids: [SubscriptionID]) async throws -> [SubscriptionID: MonitorEntry] {
        var entries: [SubscriptionID: MonitorEntry] = [:]
        for chunk in ids.chunks(of: Self.chunk) {
            var missing: [SubscriptionID] = []
            let unreadable = try await store.readAroundDamage(in: chunk) { part throws(StoreError) in
                let found = try await store.fetch(subscriptions.monitorEntries(of: Array(part)))
                entries.merge(found) { first, _ in first }
                missing += part.filter { found[$0] == nil }
            }
            errors.log(unreadable.map(\.error))
            if let monitor = monitor.withLock(\.monitor) { for id in missing { monitor.remove(id) } }
        }
        return entries
    }
}

extension RepeatedErrors {
    /// Logs the errors of parts of the subscriptions that `readAroundDamage` left out.
    func log(_ unreadable: [StoreError]) {
        guard let first = unreadable.first else { return }
        log("left out subscriptions that can't be read", reason: first.message, count: unreadable.count)
    }
}
