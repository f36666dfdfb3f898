import Core
import NodeMetrics
import SessionProtocol
import Storage

/// Reads the monitor entries of subscriptions from the store at the time of each request. Subscriptions that are missing have ended by delivery, because
/// their token is dead, or were removed by another process.
struct StoredEntries: MonitorEntrySource {
    private static let chunk = 500

    let store: any Store
    let errors: RepeatedErrors

    /// Subscriptions on damaged pages are left out, and have not ended.
    func entries(of ids: [SubscriptionID]) async throws -> (found: [SubscriptionID: MonitorEntry], ended: [SubscriptionID]) {
        let subscriptions = Subscriptions(store.sealer)
        var (found, ended): ([SubscriptionID: MonitorEntry], [SubscriptionID]) = ([:], [])
        for chunk in ids.chunks(of: Self.chunk) {
            let unreadable = try await store.readAroundDamage(in: chunk) { part throws(StoreError) in
                let entries = try await store.fetch(subscriptions.monitorEntries(of: Array(part)))
                found.merge(entries) { first, _ in first }
                ended += part.filter { entries[$0] == nil }
            }
            errors.log(unreadable.map(\.error))
        }
        return (found, ended)
    }
}

extension RepeatedErrors {
    /// Logs the errors of parts of the subscriptions that `readAroundDamage` left out.
    func log(_ unreadable: [StoreError]) {
        guard let first = unreadable.first else { return }
        log("left out subscriptions that can't be read", reason: first.message, count: unreadable.count)
    }
}
